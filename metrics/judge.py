"""The one protocol behind which every judge stands: statements and contexts in, one verdict a statement out.

Narrow on purpose, so that a rule set, a local model and a remote LLM all fit. A judge never sees an event, a threshold
or Kafka; it answers a batch of requests in order, each with a judgement or with the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from metrics.event import Chunk
from metrics.outcome import Unscored


class Label(StrEnum):
    """What the contexts say about a statement. A closed list."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class Statement:
    """One factual claim of an answer (RAGAS, arXiv:2309.15217).

    `answer[start:end]` is where it stands; `text` is what is judged: without markup, list markers and «according to the
    passages», and with the header or lead-in that a table row or a short list item needs to mean something.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage of a chunk: `quote == contexts[chunk].text[start:end]`.

    `chunk` is None where the user said it earlier: then `chunk_id` is `conversation[i]`, the i-th of the request's user
    turns, and the span lies in that turn.
    """

    chunk: int | None
    chunk_id: str | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`probability` is that of `supported`, in [0, 1]; `reason` is one line for the person who reads the case.

    `conflict`: one passage supports the statement and another contradicts it; `evidence` has both where it can.
    """

    label: Label
    reason: str
    evidence: tuple[Evidence, ...] = ()
    probability: float = 0.5
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One answer to judge. `conversation` holds earlier turns of the user; what an assistant said is no evidence.

    `similarities[i]` is the cosine of `contexts[i]` and the whole answer, None for a chunk without text; empty where
    there are no vectors. A judge may choose what it reads or shows by it, and must do without.

    `answer` is the text that the statements are of, "" where only they are known. Verdicts do not depend on it.
    """

    question: str | None
    statements: tuple[Statement, ...]
    contexts: tuple[Chunk, ...]
    conversation: tuple[str, ...] = ()
    language: str = "other"
    similarities: tuple[float | None, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdicts[i]` belongs to `request.statements[i]`; `cost` counts judge_calls, prompt_tokens, completion_tokens."""

    verdicts: tuple[Verdict, ...]
    cost: Mapping[str, int] = field(default_factory=dict)


class Judge(Protocol):
    """Gives verdicts. Order of the requests is kept; a failure of one request is its `Unscored`, never an exception."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str:
        """What verdicts depend on: kind, model or weights, prompts, thresholds. Part of every definition."""
        ...

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]: ...
