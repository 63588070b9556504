"""What the scorer exports about its judge (design: 4.6)."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from consumer.judging.replies import Outcome

SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)
TOKEN_KINDS = ("prompt", "completion")


class JudgeMetrics:
    """Counters of one judge, from 0; `judge` (its model's name) is their label."""

    def __init__(
        self, registry: CollectorRegistry, judge: str, *, prompt_price: float = 0.0, completion_price: float = 0.0
    ) -> None:
        """Prices are of 1,000 tokens."""
        requests = Counter(
            "groundwatch_judge_requests", "Requests to the judge, by how they ended.", ["judge", "outcome"],
            registry=registry,
        )  # fmt: skip
        tokens = Counter("groundwatch_judge_tokens", "Tokens of the judge.", ["judge", "kind"], registry=registry)
        seconds = Histogram(
            "groundwatch_judge_seconds", "Time of one request to the judge.", ["judge"], buckets=SECONDS_BUCKETS,
            registry=registry,
        )  # fmt: skip
        cost = Counter(
            "groundwatch_judge_cost", "Tokens times the prices of the settings, in their currency.", ["judge"],
            registry=registry,
        )  # fmt: skip
        self._requests = {outcome: requests.labels(judge, outcome.value) for outcome in Outcome}
        self._tokens = [tokens.labels(judge, kind) for kind in TOKEN_KINDS]
        self._prices = (prompt_price / 1000, completion_price / 1000)
        self._seconds = seconds.labels(judge)
        self._cost = cost.labels(judge)
        self._judge = judge
        self._registry = registry

    def request(self, outcome: Outcome, seconds: float) -> None:
        self._requests[outcome].inc()
        self._seconds.observe(seconds)

    def tokens(self, prompt: int, completion: int) -> None:
        for counter, price, number in zip(self._tokens, self._prices, (prompt, completion), strict=True):
            counter.inc(number)
            self._cost.inc(number * price)

    def watch(self, *, share: Callable[[], float], open_: Callable[[], bool], held: Callable[[], int]) -> None:
        """Gauges that are read at a scrape: the share that the budget leaves, whether the circuit is open, and the
        answers at the judge or waiting for it."""
        for name, text, value in (
            ("judge_share", "Share of sampled answers that the budget lets the judge see.", share),
            ("judge_circuit_open", "1 while the judge is left alone because it failed.", lambda: float(open_())),
            ("judge_inflight_answers", "Answers at the judge or waiting for it.", lambda: float(held())),
        ):
            gauge = Gauge(f"groundwatch_{name}", text, ["judge"], registry=self._registry)
            gauge.labels(self._judge).set_function(value)
