"""Plain thresholds on rolling scores: what the demo alerts on. In production Prometheus does this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from consumer.demo.readings import Rolling

LEAST_SAMPLES = 30
"""A rolling score of fewer samples neither raises nor ends an alert."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Alert while the rolling score is below `below`, or, where that is None, more than `drop` below calm traffic."""

    name: str
    metric: str
    below: float | None = None
    drop: float = 0.0

    def threshold(self, calm: Rolling | None) -> float | None:
        """None: calm traffic was not seen yet."""
        if self.below is not None:
            return self.below
        return None if calm is None else calm.value - self.drop


RULES = (
    Rule("FaithfulnessLow", "faithfulness", below=0.8),
    Rule("TopicSimilarityLow", "topic_similarity", drop=0.025),
    Rule("QuestionContextSimilarityLow", "question_context_similarity", drop=0.025),
)


@dataclass(frozen=True, slots=True)
class Alert:
    """One firing, in seconds since traffic began; `resolved` None: it is still firing. `value` is that at `fired`."""

    name: str
    metric: str
    threshold: float
    value: float
    fired: float
    resolved: float | None = None


class Alerts:
    """Which rules fire, and when they fired."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = tuple(rules)
        self._raised: list[Alert] = []

    def observe(
        self, elapsed: float, now: Mapping[str, Rolling], calm: Mapping[str, Rolling]
    ) -> tuple[list[Alert], list[Alert]]:
        """Take in the rolling scores by metric; what began to fire and what ended."""
        began, ended = [], []
        for rule in self._rules:
            rolling, threshold = now.get(rule.metric), rule.threshold(calm.get(rule.metric))
            if rolling is None or threshold is None or rolling.samples < LEAST_SAMPLES:
                continue
            at = next((i for i, a in enumerate(self._raised) if a.name == rule.name and a.resolved is None), None)
            if at is None and rolling.value < threshold:
                began.append(Alert(rule.name, rule.metric, threshold, rolling.value, elapsed))
                self._raised.append(began[-1])
            elif at is not None and rolling.value >= threshold:
                self._raised[at] = replace(self._raised[at], resolved=elapsed)
                ended.append(self._raised[at])
        return began, ended

    @property
    def firing(self) -> tuple[Alert, ...]:
        return tuple(alert for alert in self._raised if alert.resolved is None)

    def first_from(self, start: float) -> float | None:
        """When the first alert from `start` on fired; None: none did."""
        return min((alert.fired for alert in self._raised if alert.fired >= start), default=None)

    def listed(self) -> list[dict[str, Any]]:
        """All of them, for the summary."""
        return [
            {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(alert).items()}
            for alert in self._raised
        ]
