"""Change detection on the stream: one detector per metric and segment, and one for all segments together.

The expected time between false alarms belongs to the whole monitor: on-call hears all detectors, so each of n detectors
is given n times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from metrics.answer import ALL, Answer, Key, Segment
from metrics.detector import Detector, Scores, Shift
from metrics.ranges import range_of

RECENT = 200
"""Changes that are remembered, the latest ones."""
MOST_WAITING = 512
"""Scores of one series that wait for `flush` at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change event: in which series, and what was found. It is final: a change is reported once."""

    segment: Segment
    metric: str
    definition: str
    shift: Shift


@dataclass(slots=True)
class _Series:
    detector: Detector
    waiting: Scores = field(default_factory=Scores)


class Changes:
    """All detectors of one monitor. Not thread-safe: the caller holds one lock around every call."""

    def __init__(self, segments: Sequence[Segment], false_alarm_seconds: float) -> None:
        """`segments`: the known ones. `false_alarm_seconds`: expected time between false alarms of all together."""
        self.segments = (*segments, tuple(ALL for _ in segments[0])) if len(segments) > 1 else tuple(segments)
        self._all = self.segments[-1] if len(segments) > 1 else None
        self._seconds = false_alarm_seconds
        self._series: dict[Key, _Series] = {}
        self._recent: deque[Change] = deque(maxlen=RECENT)
        self.totals: dict[tuple[str, Segment], int] = {}
        """By metric and segment; there from 0 on for every metric that was seen."""
        self.latest: dict[tuple[str, Segment], float] = {}
        """When the latest change was found, in seconds since the epoch."""

    def recent(self) -> tuple[Change, ...]:
        """The latest changes, oldest first."""
        return tuple(self._recent)

    def add(self, answer: Answer, segment: Segment, definitions: Mapping[str, Collection[str]], at: float) -> None:
        """One live answer of a known segment; `definitions` are those that the windows admit. Found changes appear
        after the next `flush`."""
        name = (answer.id, answer.trace_id)
        for metric, score in answer.scores.items():
            series = self._of(segment, metric, answer.definitions.get(metric, ""), definitions)
            if series is not None and range_of(metric).holds(score.value):
                waiting = series.waiting
                waiting.times.append(at)
                waiting.values.append(score.value)
                waiting.weights.append(1.0 / score.probability)
                waiting.answers.append(name)
                if len(waiting) >= MOST_WAITING:
                    self._flush((segment, metric, answer.definitions[metric]), series)

    def learn(self, answer: Answer, segment: Segment, definitions: Mapping[str, Collection[str]], at: float) -> None:
        """An answer that an earlier process counted: it tells how the scores were, and no change is looked for."""
        for metric, score in answer.scores.items():
            series = self._of(segment, metric, answer.definitions.get(metric, ""), definitions)
            if series is not None and range_of(metric).holds(score.value):
                waiting = series.waiting
                waiting.times.append(at)
                waiting.values.append(score.value)
                waiting.weights.append(1.0 / score.probability)
                if len(waiting) >= MOST_WAITING:
                    self._learn((segment, metric, answer.definitions[metric]), series)

    def learned(self) -> None:
        """All that an earlier process counted was given to `learn`."""
        for key, series in list(self._series.items()):
            if len(series.waiting) and key[0] != self._all:
                self._learn(key, series)

    def flush(self) -> None:
        """Look for changes in what came since the last time. Call every few seconds."""
        for key, series in list(self._series.items()):
            if len(series.waiting) and key[0] != self._all:
                self._flush(key, series)
        for key, series in list(self._series.items()):
            if len(series.waiting):
                self._flush(key, series)

    def keep(self, definitions: Mapping[str, Collection[str]]) -> None:
        """Forget the detectors of all other definitions."""
        for key in [key for key in self._series if key[2] not in definitions.get(key[1], ())]:
            del self._series[key]

    def forget(self) -> None:
        """Forget all detectors: scores are about to be read back. Totals and recent changes stay."""
        self._series.clear()

    def _of(
        self, segment: Segment, metric: str, definition: str, definitions: Mapping[str, Collection[str]]
    ) -> _Series | None:
        series = self._series.get((segment, metric, definition))
        if series is None and definition in definitions.get(metric, ()):
            range_ = range_of(metric)
            series = self._series[segment, metric, definition] = _Series(Detector(range_.low, range_.high))
            for each in self.segments:
                self.totals.setdefault((metric, each), 0)
        return series

    def _everything(self, key: Key) -> _Series | None:
        if self._all is None or key[0] == self._all:
            return None
        return self._of(self._all, key[1], key[2], {key[1]: (key[2],)})

    def _learn(self, key: Key, series: _Series) -> None:
        series.detector.learn(series.waiting)
        everything = self._everything(key)
        if everything is not None:
            everything.detector.learn(series.waiting)
        series.waiting = Scores()

    def _flush(self, key: Key, series: _Series) -> None:
        everything = self._everything(key)
        if everything is not None:
            everything.waiting.extend(series.waiting)
            if len(everything.waiting) >= MOST_WAITING:
                self._flush((self._all or (), key[1], key[2]), everything)
        waiting, series.waiting = series.waiting, Scores()
        armed = sum(each.detector.armed for each in self._series.values())
        for shift in series.detector.take(waiting, self._seconds * max(armed, 1)):
            self._recent.append(Change(*key, shift))
            total = key[1], key[0]
            self.totals[total] = self.totals.get(total, 0) + 1
            self.latest[total] = max(self.latest.get(total, 0.0), shift.found)
