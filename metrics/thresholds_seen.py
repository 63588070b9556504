"""The thresholds in force, as the newest score record of each segment names them: what a dashboard draws as a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metrics.answer import ALL, Segment
from metrics.ranges import range_of
from metrics.rolling import MAX_METRICS, METRIC_NAME


@dataclass(frozen=True, slots=True)
class InForce:
    """A score of `metric` in `segment` is flagged below `value`."""

    segment: Segment
    metric: str
    value: float


class ThresholdsSeen:
    """Remembers one record's thresholds a segment. Records are not trusted: what is no threshold is left out."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._everything = tuple(ALL for _ in segments[0])
        self._newest: dict[Segment, tuple[float, Any]] = {}

    def note(self, segment: Segment, at: float, thresholds: Any) -> None:
        """`thresholds` of a record at time `at` (seconds), as they stand in it."""
        known = self._newest.get(segment)
        if known is None or at >= known[0]:
            self._newest[segment] = at, thresholds

    def read(self) -> list[InForce]:
        """By segment; and for all of them together where none has another value."""
        found = [InForce(s, m, v) for s, (_, named) in self._newest.items() for m, v in _usable(named).items()]
        by_metric: dict[str, list[float]] = {}
        for threshold in found:
            by_metric.setdefault(threshold.metric, []).append(threshold.value)
        shared = [
            InForce(self._everything, metric, values[0])
            for metric, values in by_metric.items()
            if len(values) == len(self._newest) and len(set(values)) == 1
        ]
        return found + shared


def _usable(named: Any) -> dict[str, float]:
    if type(named) is not dict:
        return {}
    return {
        metric: float(value)
        for metric, value in list(named.items())[:MAX_METRICS]
        if METRIC_NAME.fullmatch(metric) and type(value) in (int, float) and range_of(metric).holds(value)
    }
