"""Change detection on the stream: one detector per metric and segment, and one for all segments together.

The expected time between false alarms belongs to the whole monitor: on-call hears all detectors, so each of n detectors
is given n times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metrics.answer import ALL, Answer, Key, Segment
from metrics.contrast import Contrast
from metrics.detector import Detector, Scores, Shift
from metrics.ranges import range_of

RECENT = 200
"""Changes that are remembered, the latest ones."""
MOST_WAITING = 512
"""Scores of one series that wait for `flush` at most."""
MOST_REFRESHED = 3
"""Detectors whose alarm levels one `flush` sets anew; the scores of others wait for the next one."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change event: in which series, and what was found. It is final: a change is reported once. Only `contrast`,
    what explains it, comes later."""

    segment: Segment
    metric: str
    definition: str
    shift: Shift
    contrast: Contrast | None = None


@dataclass(slots=True)
class _Series:
    key: Key
    low: float
    high: float
    detector: Detector
    waiting: Scores = field(default_factory=Scores)
    """Live scores, until the next `flush`."""
    past: Scores = field(default_factory=Scores)
    """Scores that an earlier process counted."""


class Changes:
    """All detectors of one monitor. Not thread-safe: the caller holds one lock around every call."""

    def __init__(self, segments: Sequence[Segment], false_alarm_seconds: float) -> None:
        """`segments`: the known ones. `false_alarm_seconds`: expected time between false alarms of all together."""
        everything = tuple(ALL for _ in segments[0])
        self._all = everything if len(segments) > 1 else None
        self.segments = tuple(segments) if self._all is None else (*segments, everything)
        self._seconds = false_alarm_seconds
        self._series: dict[Segment, dict[tuple[str, str], _Series]] = {segment: {} for segment in self.segments}
        self._recent: deque[Change] = deque(maxlen=RECENT)
        self.totals: dict[tuple[str, Segment], int] = {}
        """By metric and segment; there from 0 on for every metric that was seen."""
        self.latest: dict[tuple[str, Segment], float] = {}
        """When the latest change was found, in seconds since the epoch."""

    def recent(self) -> tuple[Change, ...]:
        """The latest changes, oldest first."""
        return tuple(sorted(self._recent, key=lambda change: change.shift.found))

    def recall(self, changes: Iterable[Change]) -> None:
        """Changes that an earlier process found, of known segments; they are not counted again."""
        known = {_identity(change): change for change in self._recent}
        told = [change for change in changes if change.segment in self.segments and _identity(change) not in known]
        ordered = sorted((*told, *self._recent), key=lambda change: change.shift.found)
        self._recent = deque(ordered, maxlen=RECENT)
        for change in told:
            series = change.metric, change.segment
            self.totals.setdefault(series, 0)
            self.latest[series] = max(self.latest.get(series, 0.0), change.shift.found)

    def explain(self, change: Change, contrast: Contrast) -> None:
        """Keep with a change (as `recent` gave it) what explains it; one that is forgotten by now is left alone."""
        for place, known in enumerate(self._recent):
            if known.shift is change.shift:
                self._recent[place] = replace(known, contrast=contrast)

    def add(self, answer: Answer, segment: Segment, definitions: Mapping[str, Collection[str]], at: float) -> None:
        """One live answer of a known segment; `definitions` are those that the windows admit. What it shows appears
        after the next `flush`."""
        name = (answer.id, answer.trace_id)
        for series, value, weight in self._scores(answer, segment, definitions):
            waiting = series.waiting
            waiting.times.append(at)
            waiting.values.append(value)
            waiting.weights.append(weight)
            waiting.answers.append(name)
            if len(waiting) >= MOST_WAITING:
                self._flush_together(series.key)

    def learn(self, answer: Answer, segment: Segment, definitions: Mapping[str, Collection[str]], at: float) -> None:
        """An answer that an earlier process counted: it tells how the scores were, and no change is looked for."""
        for series, value, weight in self._scores(answer, segment, definitions):
            past = series.past
            past.times.append(at)
            past.values.append(value)
            past.weights.append(weight)
            if len(past) >= MOST_WAITING:
                self._learn(series)

    def learned(self) -> None:
        """All that an earlier process counted was given to `learn`."""
        for series in self._parts():
            if len(series.past):
                self._learn(series)

    def flush(self) -> None:
        """Look for changes in what came since the last time. Call every few seconds."""
        refreshed = 0
        for series in (*self._parts(), *self._wholes()):
            if len(series.waiting):
                if series.detector.due:
                    refreshed += 1
                    if refreshed > MOST_REFRESHED:
                        continue
                self._flush(series)

    def keep(self, definitions: Mapping[str, Collection[str]]) -> None:
        """Forget the detectors of all other definitions."""
        for held in self._series.values():
            for metric, definition in [key for key in held if key[1] not in definitions.get(key[0], ())]:
                del held[metric, definition]

    def forget(self) -> None:
        """Forget all detectors: scores are about to be read back. Totals and recent changes stay."""
        for held in self._series.values():
            held.clear()

    def _scores(
        self, answer: Answer, segment: Segment, definitions: Mapping[str, Collection[str]]
    ) -> list[tuple[_Series, float, float]]:
        """Series, value and weight of each score that has a detector."""
        held = self._series[segment]
        names = answer.definitions
        found = []
        for metric, score in answer.scores.items():
            series = held.get((metric, names.get(metric, "")))
            if series is None:
                definition = names.get(metric, "")
                if definition not in definitions.get(metric, ()):
                    continue
                series = self._made(segment, metric, definition)
            value = score.value
            if series.low <= value <= series.high:
                found.append((series, value, 1.0 / score.probability))
        return found

    def _made(self, segment: Segment, metric: str, definition: str) -> _Series:
        range_ = range_of(metric)
        detector = Detector(range_.low, range_.high)
        series = _Series((segment, metric, definition), range_.low, range_.high, detector)
        self._series[segment][metric, definition] = series
        for each in self.segments:
            self.totals.setdefault((metric, each), 0)
        return series

    def _parts(self) -> list[_Series]:
        return [series for segment, held in self._series.items() if segment != self._all for series in held.values()]

    def _wholes(self) -> list[_Series]:
        return [] if self._all is None else list(self._series[self._all].values())

    def _whole(self, part: _Series) -> _Series | None:
        """The series of all segments that this one is a part of."""
        segment, metric, definition = part.key
        if self._all is None or segment == self._all:
            return None
        return self._series[self._all].get((metric, definition)) or self._made(self._all, metric, definition)

    def _learn(self, series: _Series) -> None:
        series.detector.learn(series.past)
        whole = self._whole(series)
        if whole is not None:
            whole.detector.learn(series.past)
        series.past = Scores()

    def _flush_together(self, key: Key) -> None:
        """This metric of every segment, so that the series of all segments gets what came at the same time."""
        _, metric, definition = key
        for held in [self._series[segment] for segment in self.segments if segment != self._all]:
            series = held.get((metric, definition))
            if series is not None and len(series.waiting):
                self._flush(series)
        if self._all is not None:
            self._flush(self._series[self._all][metric, definition])

    def _flush(self, series: _Series) -> None:
        whole = self._whole(series)
        if whole is not None:
            whole.waiting.extend(series.waiting)
        # Segment after segment, their different levels would look like changes where much has come at once.
        waiting = series.waiting if series.key[0] != self._all else series.waiting.in_time()
        series.waiting = Scores()
        armed = sum(each.detector.armed for held in self._series.values() for each in held.values())
        segment, metric, definition = series.key
        for shift in series.detector.take(waiting, self._seconds * max(armed, 1)):
            self._recent.append(Change(segment, metric, definition, shift))
            self.totals[metric, segment] = self.totals.get((metric, segment), 0) + 1
            self.latest[metric, segment] = max(self.latest.get((metric, segment), 0.0), shift.found)


def _identity(change: Change) -> tuple[object, ...]:
    return change.segment, change.metric, change.definition, change.shift.found
