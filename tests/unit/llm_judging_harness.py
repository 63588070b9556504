"""Judging over a scripted chat: an event to judge, letters for an embedder, and rules that keep out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metrics.event import Chunk, Event
from metrics.judge import Judgement, JudgeRequest, Label, Verdict
from metrics.llm.judging import LlmJudging, Options
from metrics.llm.prompts import load_book
from metrics.metric import Text, Vector
from metrics.outcome import Outcome, Reason, Unscored
from tests.unit.scripted_chat import Asked, Scripted, verdict

FAITHFULNESS = frozenset({"faithfulness"})
LEAVE = Chunk("Full-time staff have 26 days of paid leave a year. Leave must be taken by the end of March.", "hr-1")
PARKING = Chunk("Staff may park in the yard behind the office on Sundays.", "hr-2")
ANSWER = "You have 26 days of paid leave a year. You can park behind the office on Sundays."


class Agreeing:
    """Rules that have no opinion of their own: they fail, so the model stands alone."""

    name = identity = "agreeing"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Unscored(Reason.JUDGE_ERROR)] * len(requests)


class Fixed:
    """Rules that come to one label whatever they are asked."""

    name = identity = "fixed"

    def __init__(self, label: Label) -> None:
        self.label = label

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Judgement(tuple(Verdict(self.label, "a rule", (), 0.9) for _ in r.statements)) for r in requests]


def event(answer: str | None = ANSWER, contexts: Sequence[Chunk] = (LEAVE, PARKING), **more: Any) -> Event:
    return Event("e-1", 0.0, more.pop("question", "How much leave do I have?"), tuple(contexts), answer, **more)


def embed(texts: Sequence[Text]) -> list[Vector | Unscored]:
    """Every text in a direction of its own letters: alike where the letters are."""
    return [_letters(text.content) for text in texts]


def _letters(text: str) -> Vector:
    counts = np.array([1 + text.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"], np.float32)
    return np.asarray(counts / np.linalg.norm(counts), np.float32)


def judging(
    answer: Callable[[Asked], Any], rules: Any = None, cache: Any = None, **options: Any
) -> tuple[LlmJudging, Scripted]:
    chat = Scripted(answer)
    return (
        LlmJudging(
            chat,
            embed,
            load_book(),
            embedder_identity="letters",
            cache=cache,
            options=Options(**options),
            rules=rules or Agreeing(),
        ),
        chat,
    )


def score(judge: LlmJudging, one: Event) -> tuple[Outcome, Sequence[Verdict]]:
    result = judge.judge(one, FAITHFULNESS)
    assert set(result.outcomes) == {"faithfulness"}
    assert result.judged is not None
    return result.outcomes["faithfulness"], result.judged.verdicts


def supports(claim: str) -> Callable[[Asked], Any]:
    return lambda asked: verdict("supported" if claim in asked.claims[0] else "not_found")
