"""Which distributions have drifted: every score and sketch, against the baseline and against the span before.

All comparisons together take seconds, so they are made a few at a time, the stalest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

import numpy as np

from metrics.answer import ALL, Segment
from metrics.baseline import Baseline
from metrics.drift import NullLevels, Sample, Statistics, drift
from metrics.ranges import range_of
from metrics.rolling import Spans
from metrics.sketch_distance import Points, sketch_distance
from metrics.sketch_reservoir import PARTS, Sampled, Span

ReferenceName = Literal["baseline", "previous"]

STALE_SECONDS = 30.0
"""A comparison is made anew when it is older than this, as soon as its turn comes."""
LOST_SECONDS = 600.0
"""One that could not be made for so long is shown no longer."""


class DriftKey(NamedTuple):
    """`what`: a metric, or `question` or `context`."""

    what: str
    reference: ReferenceName
    window: str
    segment: Segment


@dataclass(frozen=True, slots=True)
class DriftReading:
    """One comparison: `values` and `null_high` by statistic, and how many samples of equal weight each side has."""

    key: DriftKey
    at: float
    values: dict[str, float]
    null_high: dict[str, float]
    recent: float
    reference: float


class _Task(NamedTuple):
    key: DriftKey
    compare: Callable[[float], DriftReading | None]


class DriftWatch:
    """The latest comparison of each kind. `update` is for one thread; `readings` may be called from any."""

    def __init__(
        self,
        baseline: Baseline | None,
        segment_keys: Sequence[str],
        *,
        minimum_samples: float,
        clock: Callable[[], float],
    ) -> None:
        """Below `minimum_samples` (Kish's) on either side nothing is compared. `clock` measures the time that an update
        takes."""
        self._baseline = baseline
        self._segment_keys = tuple(segment_keys)
        self._minimum = minimum_samples
        self._clock = clock
        self._null = NullLevels()
        self._baseline_samples: dict[tuple[str, str, Segment], Sample | None] = {}
        self._baseline_points: dict[tuple[str, str, Segment], Points | None] = {}
        self._made: dict[DriftKey, float] = {}
        self._readings: dict[DriftKey, DriftReading] = {}

    def readings(self) -> list[DriftReading]:
        """The latest comparisons."""
        return list(self._readings.values())

    def forget(self) -> None:
        """Show nothing until the next update."""
        self._made.clear()
        self._readings = {}

    def stalest(self, spans: Iterable[Span], number: int) -> list[Span]:
        """Of these spans of sketches, those that `update` should be given next: at most `number`."""
        due: list[tuple[float, Span]] = []
        for span in spans:
            made = self._made.get(DriftKey(PARTS[0], "previous", span.window, span.segment), -math.inf)
            due.append((made, span))
        return [span for _, span in sorted(due, key=_made_at)[:number]]

    def update(self, spans: Iterable[Spans], sketches: Iterable[Sampled], now: float, seconds: float) -> None:
        """Make the stalest comparisons until `seconds` have passed; at least one. `sketches` may be some of all."""
        given = list(sketches)
        tasks = [*self._of_scores(spans), *self._of_sketches(given)]
        due = [task for task in tasks if now - self._made.get(task.key, -math.inf) >= STALE_SECONDS]
        readings = dict(self._readings)
        until = self._clock() + seconds
        for task in sorted(due, key=lambda task: self._made.get(task.key, -math.inf)):
            self._made[task.key] = now
            made = task.compare(now)
            if made is None:
                readings.pop(task.key, None)
            else:
                readings[task.key] = made
            if self._clock() >= until:
                break
        known = {task.key for task in tasks}
        looked_at = {(sampled.part, sampled.segment, sampled.window) for sampled in given}
        self._readings = {
            key: reading
            for key, reading in readings.items()
            if now - reading.at < LOST_SECONDS
            and (key in known or (key.what in PARTS and (key.what, key.segment, key.window) not in looked_at))
        }

    def _of_scores(self, spans: Iterable[Spans]) -> Iterable[_Task]:
        for span in spans:
            if span.recent is None:
                continue
            references: list[tuple[ReferenceName, Sample | None]] = [
                ("baseline", self._sample_of_baseline(span)),
                ("previous", span.previous),
            ]
            for name, sample in references:
                if sample is not None:
                    key = DriftKey(span.metric, name, span.window, span.segment)
                    yield _Task(key, self._comparison(key, span.recent, sample))

    def _comparison(self, key: DriftKey, recent: Sample, reference: Sample) -> Callable[[float], DriftReading | None]:
        def compare(now: float) -> DriftReading | None:
            if min(recent.effective, reference.effective) < self._minimum:
                return None
            range_ = range_of(key.what)
            values, null = drift(recent, reference, range_), self._null.of(recent, reference, range_)
            return DriftReading(key, now, _named(values), _named(null), recent.effective, reference.effective)

        return compare

    def _of_sketches(self, sketches: Iterable[Sampled]) -> Iterable[_Task]:
        for sampled in sketches:
            references: list[tuple[ReferenceName, Points]] = [("previous", sampled.previous)]
            points = self._points_of_baseline(sampled)
            if points is not None:
                references.append(("baseline", points))
            for name, others in references:
                key = DriftKey(sampled.part, name, sampled.window, sampled.segment)
                yield _Task(key, _sketch_comparison(key, sampled.recent, others, self._minimum))

    def _sample_of_baseline(self, span: Spans) -> Sample | None:
        """Looked up once: a baseline does not change."""
        key = span.metric, span.definition, span.segment
        if key not in self._baseline_samples:
            found = None
            if self._baseline is not None:
                labels = self._labels(span.segment)
                found = self._baseline.distribution(span.metric, span.definition, labels, math.ceil(self._minimum))
            self._baseline_samples[key] = (
                None if found is None else Sample(np.asarray(found.histogram, np.float64), found.n, float(found.n))
            )
        return self._baseline_samples[key]

    def _points_of_baseline(self, sampled: Sampled) -> Points | None:
        key = sampled.part, sampled.embedder, sampled.segment
        if key not in self._baseline_points:
            found = None
            if self._baseline is not None:
                labels = self._labels(sampled.segment)
                found = self._baseline.sketches_of(sampled.part, sampled.embedder, labels, math.ceil(self._minimum))
            self._baseline_points[key] = None if found is None else found.points()
        return self._baseline_points[key]

    def _labels(self, segment: Segment) -> dict[str, str]:
        return {key: value for key, value in zip(self._segment_keys, segment, strict=True) if value != ALL}


def _made_at(due: tuple[float, Span]) -> float:
    return due[0]


def _sketch_comparison(
    key: DriftKey, recent: Points, reference: Points, minimum: float
) -> Callable[[float], DriftReading | None]:
    def compare(now: float) -> DriftReading | None:
        if min(len(recent), len(reference)) < minimum:
            return None
        found = sketch_distance(recent, reference)
        if found is None:
            return None
        return DriftReading(
            key, now, {"mmd": found.mmd}, {"mmd": found.null_high}, float(len(recent)), float(len(reference))
        )

    return compare


def _named(statistics: Statistics) -> dict[str, float]:
    return asdict(statistics)
