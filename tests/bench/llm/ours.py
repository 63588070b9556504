"""Our own LLM judge over cases, through the client that the scorer uses; tokens are read off the server's replies."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Queue

import httpx
from prometheus_client import CollectorRegistry

from consumer.embedders import load_embedder
from consumer.judging.chat_client import JudgeClient
from consumer.judging.circuit import Circuit
from consumer.judging.judge_metrics import JudgeMetrics
from consumer.settings import Settings
from metrics.event import Chunk, Event
from metrics.llm.chat import Chat, Message, Reply
from metrics.llm.judging import LlmJudging
from metrics.llm.passages import Embed
from metrics.metric import Text, Vector
from metrics.outcome import Scored, Unscored
from tests.bench.llm.cases import Case
from tests.bench.llm.comparison import Result

TIMEOUT = 3600.0
"""Seconds a call: a slow machine is not what is measured."""


@contextmanager
def counted_client(url: str, model: str, used: Counter[str]) -> Iterator[JudgeClient]:
    """A client whose every response adds calls, prompt_tokens and completion_tokens to `used`."""

    def count(response: httpx.Response) -> None:
        response.read()
        used["calls"] += 1
        usage = response.json().get("usage") or {} if response.status_code == 200 else {}
        used["prompt_tokens"] += usage.get("prompt_tokens", 0)
        used["completion_tokens"] += usage.get("completion_tokens", 0)

    with httpx.Client(base_url=url.rstrip("/") + "/", event_hooks={"response": [count]}) as http:
        metrics = JudgeMetrics(CollectorRegistry(), model)
        yield JudgeClient(http, model, metrics=metrics, circuit=Circuit(time.monotonic))


def default_embed() -> tuple[Embed, str]:
    """The embedder of the default settings, one caller at a time, and its identity."""
    embedder = load_embedder(Settings().embedding, lambda result, number: None).embedder
    lock = threading.Lock()

    def embed(texts: Sequence[Text]) -> Sequence[Vector | Unscored]:
        with lock:
            return embedder.embed(texts)

    return embed, embedder.identity


@dataclass(frozen=True, slots=True)
class PatientChat:
    """A `Chat` that gives every call an hour, and keeps the texts of the replies if it is given a list."""

    client: JudgeClient
    replies: list[str] | None = None

    @property
    def model(self) -> str:
        return self.client.model

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        """Raises: ChatError."""
        reply = self.client.complete(messages, max_tokens, schema, time.monotonic() + TIMEOUT)
        if self.replies is not None:
            self.replies.append(reply.text)
        return reply


def judged(
    cases: Sequence[Case], servers: Sequence[str], model: str, parallel: int, judge_on: Callable[[Chat], LlmJudging]
) -> Iterator[tuple[Case, Result, tuple[str, ...]]]:
    """Every case with its result and its verdicts, one line a statement, as they come.

    `parallel` answers at once on each server."""
    left: Queue[Case] = Queue()
    for case in cases:
        left.put(case)
    done: Queue[tuple[Case, Result, tuple[str, ...]] | Exception] = Queue()

    def work(url: str) -> None:
        used: Counter[str] = Counter()
        try:
            with counted_client(url, model, used) as client:
                judge = judge_on(PatientChat(client))
                with suppress(Empty):
                    while True:
                        done.put(_judged_one(left.get_nowait(), judge, used))
        except Exception as problem:
            done.put(problem)

    for url in servers:
        for _ in range(parallel):
            threading.Thread(target=work, args=(url,), daemon=True).start()
    for _ in cases:
        found = done.get()
        if isinstance(found, Exception):
            raise found
        yield found


def _judged_one(case: Case, judge: LlmJudging, used: Counter[str]) -> tuple[Case, Result, tuple[str, ...]]:
    used.clear()
    started = time.monotonic()
    answer = judge.judge(event_of(case), frozenset({"faithfulness"}))
    seconds = round(time.monotonic() - started, 3)
    outcome = answer.outcomes["faithfulness"]
    score = outcome.value if isinstance(outcome, Scored) else None
    reason = outcome.reason.value if isinstance(outcome, Unscored) else None
    lines = verdict_lines(answer.judged)
    counts = used["calls"], used["prompt_tokens"], used["completion_tokens"]
    return case, Result(case.id, judge.identity, score, reason, *counts, seconds, len(lines)), lines


def verdict_lines(judged: object) -> tuple[str, ...]:
    """One line a statement, to look errors up."""
    verdicts = getattr(judged, "verdicts", ())
    statements = getattr(judged, "statements", ())
    return tuple(
        f"{verdict.label.value}: {statement.text} ({verdict.reason})"
        for statement, verdict in zip(statements, verdicts, strict=False)
    )


def event_of(case: Case) -> Event:
    chunks = tuple(Chunk(text, id=f"c{k}") for k, text in enumerate(case.contexts))
    return Event(case.id, 0.0, case.question, chunks, case.answer, labels={"lang": case.language})
