"""People's labels that correct the rolling scores: the audited ones of the last weeks, and the rectifiers they make."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metrics.answer import ALL, Segment
from metrics.correction import Corrected, LabelledScore, Rectifier, corrected, rectifier
from metrics.interval import Interval, wilson
from metrics.rolling import Reading

MOST = 10_000
"""Labels that are kept, those of the latest answers; some 8 MB."""
STALE_SECONDS = 60.0
"""Rectifiers are made anew when labels came or went, or after so long, since labels grow old."""
Z99 = 2.575829303548901
MUCH_MORE = 0.15
"""By so much the share of flagged answers among the labels may be above that of the traffic: whoever labels what was
flagged, and leaves out audited answers that were not, has no fair sample."""


class LabelledMetric(NamedTuple):
    """What one metric said of a labelled answer: its value under a definition, and how probable it was that it would be
    both sampled and audited."""

    metric: str
    definition: str
    value: float
    probability: float


class LabelledAnswer(NamedTuple):
    """One audited answer that a person labelled; `at`: the time of the event (seconds since the epoch)."""

    at: float
    segment: Segment
    good: bool
    flagged: bool
    metrics: tuple[LabelledMetric, ...]


@dataclass(frozen=True, slots=True)
class CorrectedReading:
    """A corrected rolling score."""

    segment: Segment
    metric: str
    window: str
    corrected: Corrected


@dataclass(frozen=True, slots=True)
class LabelCount:
    """How many labels there are to correct a metric of a segment under its newest definition, and the weighted share of
    flagged answers among them."""

    segment: Segment
    metric: str
    labels: int
    flagged: float


class LabelBook:
    """The labels of one monitor. Safe for threads."""

    def __init__(self, seconds: float) -> None:
        """Labels of answers from the last `seconds` correct."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: dict[str, LabelledAnswer] = {}
        self._changed = True
        self._made: tuple[float, Mapping[str, str]] = (0.0, {})
        self._known: dict[tuple[Segment, str], _Known] = {}

    def keep(self, event_id: str, answer: LabelledAnswer | None) -> None:
        """The label of that event, in place of the one before; None: it has none that corrects anything."""
        with self._lock:
            before = self._kept.pop(event_id, None)
            if answer is not None:
                self._kept[event_id] = answer
                if len(self._kept) > MOST + MOST // 10:
                    newest = sorted(self._kept.items(), key=lambda item: item[1].at)[-MOST:]
                    self._kept = dict(newest)
            self._changed = self._changed or before != answer

    def forget(self) -> None:
        """All of them: they are about to be read anew."""
        with self._lock:
            self._kept.clear()
            self._changed = True

    def correct(
        self, readings: Iterable[Reading], flagged: Mapping[Segment, float], newest: Mapping[str, str], now: float
    ) -> list[CorrectedReading]:
        """Corrections of those of `readings` that are of the newest definition (`newest`, by metric), where there are
        labels enough, and flagged answers are not many more among them than `flagged` says of the traffic of the
        segment."""
        found = []
        known = self._made_now(newest, now)
        for reading in readings:
            labels = known.get((reading.segment, reading.metric))
            if labels is None or labels.by is None or reading.definition != newest.get(reading.metric):
                continue
            if labels.flagged_low > flagged.get(reading.segment, 0.0) + MUCH_MORE:
                continue
            if reading.mean is not None and reading.low is not None and reading.high is not None:
                share = corrected(reading.mean, Interval(reading.low, reading.high), labels.by)
                found.append(CorrectedReading(reading.segment, reading.metric, reading.window, share))
        return found

    def counts(self, newest: Mapping[str, str], now: float) -> list[LabelCount]:
        """For each metric and segment that has a label, and for all segments together."""
        known = self._made_now(newest, now)
        return [LabelCount(segment, metric, k.labels, k.flagged) for (segment, metric), k in known.items()]

    def _made_now(self, newest: Mapping[str, str], now: float) -> Mapping[tuple[Segment, str], _Known]:
        with self._lock:
            at, of = self._made
            if self._changed or newest != of or not 0.0 <= now - at < STALE_SECONDS:
                self._make(newest, now)
            return self._known

    def _make(self, newest: Mapping[str, str], now: float) -> None:
        oldest = now - self._seconds
        self._kept = {name: answer for name, answer in self._kept.items() if answer.at >= oldest}
        labelled: dict[tuple[Segment, str], list[tuple[LabelledScore, bool]]] = {}
        for answer in self._kept.values():
            everything = tuple(ALL for _ in answer.segment)
            for metric, definition, value, probability in answer.metrics:
                if newest.get(metric) == definition:
                    one = LabelledScore(value, answer.good, probability), answer.flagged
                    labelled.setdefault((answer.segment, metric), []).append(one)
                    labelled.setdefault((everything, metric), []).append(one)
        self._known = {key: _known(ones) for key, ones in labelled.items()}
        self._made, self._changed = (now, dict(newest)), False


class _Known(NamedTuple):
    """Of one metric and segment: how many labels, what they add, the share of flagged answers, its lower bound."""

    labels: int
    by: Rectifier | None
    flagged: float
    flagged_low: float


def _known(labelled: Sequence[tuple[LabelledScore, bool]]) -> _Known:
    rarest = min(one.probability for one, _ in labelled)
    weights = [rarest / one.probability for one, _ in labelled]
    total = sum(weights)
    flagged = sum(weight for weight, (_, flag) in zip(weights, labelled, strict=True) if flag) / total
    effective = total * total / sum(weight * weight for weight in weights)
    by = rectifier([one for one, _ in labelled])
    return _Known(len(labelled), by, flagged, wilson(flagged, effective, Z99).low)
