"""The LLM judge: what scores (`metrics.llm`) over what calls (`JudgeClient`), with a deadline for every answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from consumer.judging.budget import Budget
from consumer.judging.chat_client import JudgeClient
from consumer.judging.judge_metrics import JudgeMetrics
from metrics.evaluation import Remote, RemoteResult
from metrics.event import Event
from metrics.llm.chat import Chat

PROBE_SECONDS = 10.0
WAIT_SECONDS = 0.1


class RemoteJudge:
    """A `metrics.evaluation.Remote` that keeps deadlines. Safe for threads. `now` is monotonic seconds."""

    def __init__(
        self,
        client: JudgeClient,
        judging: Callable[[Chat], Remote],
        budget: Budget,
        metrics: JudgeMetrics,
        *,
        timeout_seconds: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`judging(chat)` makes the scoring part over a chat; it is called once an answer."""
        usual = judging(client.until(now()))
        self.model = client.model
        self.identity: str = usual.identity
        self.prompts_version: str = usual.prompts_version
        self.definitions: Mapping[str, str] = usual.definitions
        self.bounds: Mapping[str, tuple[float, float]] = usual.bounds
        self.budget = budget
        self._client = client
        self._metrics = metrics
        self._judging = judging
        self._timeout = timeout_seconds
        self._now = now
        self._sleep = sleep

    def judge(self, event: Event, wanted: frozenset[str]) -> RemoteResult:
        """For callers with time (a file): while the circuit is open this waits for the judge to come back, but not
        longer than the timeout after it opened. Then it blocks for at most about the timeout."""
        circuit = self._client.circuit
        while 0.0 < circuit.open_seconds < self._timeout:
            self.probe_if_due()
            self._sleep(WAIT_SECONDS)
        self.probe_if_due()
        return self.judge_until(event, wanted, self._now() + self._timeout)

    def judge_until(self, event: Event, wanted: frozenset[str], deadline: float) -> RemoteResult:
        """What is not there by `deadline` is unscored(judge_timeout); what was scored before it is kept."""
        return self._judging(self._client.until(deadline)).judge(event, wanted)

    def watch(self, *, held: Callable[[], int]) -> None:
        """Export the gauges of budget, circuit and pool; `held()` counts the answers in the pool."""
        self._metrics.watch(share=lambda: self.budget.share, open_=lambda: self.is_open, held=held)

    @property
    def is_open(self) -> bool:
        return self._client.circuit.is_open

    def probe_if_due(self) -> None:
        if self._client.circuit.probe_is_due():
            self._client.probe(min(PROBE_SECONDS, self._timeout))
