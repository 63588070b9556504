"""Rolling windows over event time: weighted sums and small histograms per segment, metric and definition.

A window's mean is Σ(s/p) / Σ(1/p) over the answers in it, p being the inclusion probability of that score (Hájek's
estimator, 1971): it estimates the mean over all events for which the score is defined, whatever the sampling did.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from metrics.answer import ALL, Answer, Key, Segment, flagged_weight
from metrics.drift import Sample
from metrics.interval import Moments, quantile, score_interval
from metrics.outcome import Kind, Reason
from metrics.ranges import Range, range_of
from metrics.ring import SLICES, Ring, Window

Sums = npt.NDArray[np.float64]

MAX_METRICS = 32
MAX_DEFINITIONS = 8
"""Definitions of one metric that are kept side by side (the latest ones); a rollout needs two."""

METRIC_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_DEFINITION = re.compile(r"[0-9a-z_.-]{1,40}")
_NOT_FAILED = frozenset(reason.value for reason in Reason if reason.kind is not Kind.FAILED)
"""A reason that this version does not know counts as a failure."""

# Columns of a score row; the bins follow. Of an answer row: n, weight, weight of refusals, weight of flagged.
_N, _W, _W2, _WS, _S, _S2, _W3, _W4, _W2S, _W2S2, _FAILED_W, _BINS = range(12)
_ANSWER_FIELDS = 4


class Added(NamedTuple):
    """What became of one answer's values: how many were outside their range, how many names were over the caps."""

    nonfinite: int
    overflow: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One rolling score. `samples` may be 0, and then only `coverage` can be there (scores that all failed)."""

    segment: Segment
    metric: str
    definition: str
    window: str
    samples: int
    effective: float
    mean: float | None
    low: float | None
    high: float | None
    p10: float | None
    coverage: float | None


class Slices(NamedTuple):
    """One series in a window, slice by slice: numbers of the slices that there are, in order, and for each the sums of
    `metrics.interval.Moments`, shape (n, 10)."""

    segment: Segment
    metric: str
    definition: str
    numbers: list[int]
    moments: Sums


class Spans(NamedTuple):
    """The scores of one series in a window, and in the span of the same length before it; None where there are none."""

    segment: Segment
    metric: str
    definition: str
    window: str
    recent: Sample | None
    previous: Sample | None


@dataclass(frozen=True, slots=True)
class Shares:
    """Of one segment and window: weighted shares of refusals and of flagged answers; None without an answer."""

    segment: Segment
    window: str
    refusal: float | None
    flagged: float | None


@dataclass(slots=True)
class Definition:
    """A definition of one metric: when it was first and last seen, and the versions that its first record named."""

    first: float
    last: float
    versions: Mapping[str, str]


class _Series:
    __slots__ = ("definition", "range", "rings")

    def __init__(self, definition: Definition, range_: Range, windows: int) -> None:
        self.definition = definition
        self.range = range_
        self.rings = tuple(Ring(_BINS + range_.bins) for _ in range(windows))


class Rolling:
    """All windows of one monitor. Not thread-safe: the caller holds one lock around `add` and `read`."""

    def __init__(self, windows: Mapping[str, float], segments: Sequence[Segment]) -> None:
        """`windows`: name to length in seconds. `segments`: the known segments, all of them exported from the start."""
        self.windows = tuple(Window(name, seconds) for name, seconds in windows.items())
        self.longest = max(window.seconds for window in self.windows)
        self.segments = tuple(segments)
        self._series: dict[Key, _Series] = {}
        self._answers = {segment: tuple(Ring(_ANSWER_FIELDS) for _ in self.windows) for segment in self.segments}
        self._definitions: dict[str, dict[str, Definition]] = {}
        self._firsts: tuple[float, tuple[int, ...]] = (-1.0, ())

    @property
    def definitions(self) -> Mapping[str, Mapping[str, Definition]]:
        """By metric: the definitions that are kept."""
        return self._definitions

    def add(self, answer: Answer, segment: Segment, at: float, now: float) -> Added:
        """Add one answer of a known segment, at time `at`, to every window that holds that time at `now`."""
        places = self._places(at, now)
        if not places:
            return Added(0, 0)
        self._add_answer(answer, segment, places)
        nonfinite = overflow = 0
        for metric, score in answer.scores.items():
            series = self._of(answer, segment, metric, at)
            if series is None:
                overflow += 1
                continue
            value, weight = score.value, 1.0 / score.probability
            range_ = series.range
            if not range_.holds(value):
                nonfinite += 1
                _add_failed(series, weight, places)
                continue
            bin_ = _BINS + range_.bin_of(value)
            squared = weight * weight
            square = value * value
            weighted, cubed, fourth = weight * value, squared * weight, squared * squared
            squared_value, squared_square = squared * value, squared * square
            for window, number in places:
                ring = series.rings[window]
                row = ring.row(number)
                if row >= 0:
                    cells = ring.cells
                    cells[row] += 1.0
                    cells[row + _W] += weight
                    cells[row + _W2] += squared
                    cells[row + _WS] += weighted
                    cells[row + _S] += value
                    cells[row + _S2] += square
                    cells[row + _W3] += cubed
                    cells[row + _W4] += fourth
                    cells[row + _W2S] += squared_value
                    cells[row + _W2S2] += squared_square
                    cells[row + bin_] += weight
        for metric, missing in answer.unscored.items():
            if missing.reason not in _NOT_FAILED:
                series = self._of(answer, segment, metric, at)
                if series is None:
                    overflow += 1
                else:
                    _add_failed(series, 1.0 / missing.probability, places)
        return Added(nonfinite, overflow)

    def read(self, now: float) -> tuple[list[Reading], list[Shares]]:
        """Every rolling score and share at `now`: per segment, and for the sum of all segments (`all` in every label).

        Definitions that have left the longest window are forgotten here, but for the newest one of each metric.
        """
        self._forget(now)
        readings: list[Reading] = []
        shares: list[Shares] = []
        everything = tuple(ALL for _ in self.segments[0])
        for index, window in enumerate(self.windows):
            first, last = window.first_slice(now), window.slice_of(now)
            for metric, definitions in self._definitions.items():
                for definition in definitions:
                    total = None
                    for segment in self.segments:
                        series = self._series.get((segment, metric, definition))
                        sums = None if series is None else series.rings[index].sums(first, last)
                        total = _plus(total, sums)
                        readings.append(_reading((segment, metric, definition), window.name, sums))
                    readings.append(_reading((everything, metric, definition), window.name, total))
            total = None
            for segment in self.segments:
                sums = self._answers[segment][index].sums(first, last)
                total = _plus(total, sums)
                shares.append(_shares(segment, window.name, sums))
            shares.append(_shares(everything, window.name, total))
        return readings, shares

    def spans(self, now: float, windows: Collection[str]) -> list[Spans]:
        """The distributions in these windows at `now`, under the newest definition of each metric: per segment, and for
        the sum of all segments."""
        found: list[Spans] = []
        everything = tuple(ALL for _ in self.segments[0])
        for index, window in enumerate(self.windows):
            if window.name not in windows:
                continue
            first, last = window.first_slice(now), window.slice_of(now)
            for metric, definitions in self._definitions.items():
                newest = _newest(definitions)
                recent_total = previous_total = None
                for segment in self.segments:
                    series = self._series.get((segment, metric, newest))
                    if series is not None:
                        ring = series.rings[index]
                        recent, previous = ring.sums(first, last), ring.sums_before(first)
                        recent_total, previous_total = _plus(recent_total, recent), _plus(previous_total, previous)
                        found.append(Spans(segment, metric, newest, window.name, _sample(recent), _sample(previous)))
                both = _sample(recent_total), _sample(previous_total)
                found.append(Spans(everything, metric, newest, window.name, *both))
        return found

    def slices(self, now: float, window_name: str) -> list[Slices]:
        """The series of this window at `now`, slice by slice, under the newest definition of each metric: per segment.

        Raises:
            KeyError: there is no such window.
        """
        index, window = {window.name: (at, window) for at, window in enumerate(self.windows)}[window_name]
        first, last = window.first_slice(now), window.slice_of(now)
        newest = {metric: max(known.items(), key=_first_seen)[0] for metric, known in self._definitions.items()}
        return [
            Slices(*key, *series.rings[index].rows(first, last, _W2S2 + 1))
            for key, series in self._series.items()
            if newest.get(key[1]) == key[2]
        ]

    def _places(self, at: float, now: float) -> list[tuple[int, int]]:
        """(window, slice) of every window that holds time `at` at `now`, or that held it one length ago."""
        if self._firsts[0] != now:
            self._firsts = now, tuple([window.first_slice(now) for window in self.windows])
        places = []
        for index, first in enumerate(self._firsts[1]):
            number = self.windows[index].slice_of(at)
            if number >= first - SLICES:
                places.append((index, number))
        return places

    def _add_answer(self, answer: Answer, segment: Segment, places: list[tuple[int, int]]) -> None:
        weight = 1.0 / answer.probability
        refused = weight if answer.refusal else 0.0
        flagged = flagged_weight(answer) if answer.flags else 0.0
        rings = self._answers[segment]
        for window, number in places:
            ring = rings[window]
            row = ring.row(number)
            if row >= 0:
                cells = ring.cells
                cells[row] += 1.0
                cells[row + 1] += weight
                cells[row + 2] += refused
                cells[row + 3] += flagged

    def _of(self, answer: Answer, segment: Segment, metric: str, at: float) -> _Series | None:
        """The series, made where it is new; None for a name that is none, or one too many."""
        name = answer.definitions.get(metric, "")
        series = self._series.get((segment, metric, name))
        if series is None:
            if not self._admits(metric, name):
                return None
            known = self._definitions.setdefault(metric, {})
            if name not in known:
                if len(known) >= MAX_DEFINITIONS:
                    self._drop(metric, _oldest(known))
                known[name] = Definition(at, at, answer.versions)
            series = _Series(known[name], range_of(metric), len(self.windows))
            self._series[segment, metric, name] = series
        if at > series.definition.last:
            series.definition.last = at
        elif at < series.definition.first:
            series.definition.first = at
        return series

    def _admits(self, metric: str, definition: str) -> bool:
        room = metric in self._definitions or len(self._definitions) < MAX_METRICS
        return room and bool(METRIC_NAME.fullmatch(metric)) and bool(_DEFINITION.fullmatch(definition))

    def _forget(self, now: float) -> None:
        for metric, known in self._definitions.items():
            # Twice the longest window, because the slice that the window begins in counts whole.
            while len(known) > 1 and known[_oldest(known)].last < now - 2 * self.longest:
                self._drop(metric, _oldest(known))

    def _drop(self, metric: str, definition: str) -> None:
        del self._definitions[metric][definition]
        for segment in self.segments:
            self._series.pop((segment, metric, definition), None)


def _oldest(known: Mapping[str, Definition]) -> str:
    return min(known, key=lambda name: known[name].last)


def newest_definitions(definitions: Mapping[str, Mapping[str, Definition]]) -> dict[str, str]:
    """By metric, the definition that came last."""
    return {metric: _newest(known) for metric, known in definitions.items() if known}


def _newest(known: Mapping[str, Definition]) -> str:
    return max(known.items(), key=_first_seen)[0]


def _first_seen(item: tuple[str, Definition]) -> float:
    return item[1].first


def _add_failed(series: _Series, weight: float, places: list[tuple[int, int]]) -> None:
    for window, number in places:
        ring = series.rings[window]
        row = ring.row(number)
        if row >= 0:
            ring.cells[row + _FAILED_W] += weight


def _plus(total: Sums | None, sums: Sums | None) -> Sums | None:
    if total is None or sums is None:
        return sums if total is None else total
    return total + sums


def _reading(key: Key, window: str, sums: Sums | None) -> Reading:
    segment, metric, definition = key
    n = 0.0 if sums is None else float(sums[_N])
    if sums is None or n == 0.0:
        failed = sums is not None and sums[_FAILED_W] > 0.0
        return Reading(segment, metric, definition, window, 0, 0.0, None, None, None, None, 0.0 if failed else None)
    range_ = range_of(metric)
    moments = Moments(*(float(x) for x in sums[: _W2S2 + 1]))
    interval = score_interval(moments, range_.low, range_.high)
    mean = min(max(moments.mean, range_.low), range_.high)
    coverage = moments.w / (moments.w + float(sums[_FAILED_W]))
    p10 = quantile(sums[_BINS:].tolist(), range_.edges, 0.1)
    return Reading(
        segment, metric, definition, window, int(n), moments.kish, mean, interval.low, interval.high, p10, coverage
    )


def _sample(sums: Sums | None) -> Sample | None:
    if sums is None or sums[_N] == 0.0:
        return None
    return Sample(sums[_BINS:], int(sums[_N]), float(sums[_W] * sums[_W] / sums[_W2]))


def _shares(segment: Segment, window: str, sums: Sums | None) -> Shares:
    if sums is None or sums[1] <= 0.0:
        return Shares(segment, window, None, None)
    # The flagged are weighted by their own probability, so that in a small window they may outweigh the answers.
    return Shares(segment, window, float(sums[2] / sums[1]), min(1.0, float(sums[3] / sums[1])))
