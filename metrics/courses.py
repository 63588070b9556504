"""The course of a rolling score inside its window: a few points, each with its own interval and sample count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from metrics.answer import ALL, Segment
from metrics.interval import Interval, Moments, score_interval
from metrics.ranges import range_of
from metrics.ring import SLICES
from metrics.rolling import Slices, Sums

POINTS = 12


@dataclass(frozen=True, slots=True)
class Point:
    """The weighted mean over [start, end) (seconds since the epoch) and its 95 % interval; None without an answer."""

    start: float
    end: float
    samples: int
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """One series, oldest point first; the last one is still being filled."""

    segment: Segment
    metric: str
    definition: str
    points: tuple[Point, ...]


def courses(slices: Iterable[Slices], now: float, seconds: float) -> list[Course]:
    """The courses of these series in a window of `seconds`, and of all segments together (`all` in every label)."""
    width = SLICES // POINTS
    last = int(now * SLICES / seconds) // width
    found: list[Course] = []
    totals: dict[tuple[str, str], dict[int, Sums]] = {}
    segment: Segment = ()
    for series in slices:
        segment = series.segment
        groups: dict[int, Sums] = {}
        for number, row in zip(series.numbers, series.moments, strict=True):
            group = number // width
            groups[group] = groups[group] + row if group in groups else row
        found.append(_course(series.segment, series.metric, series.definition, groups, last, seconds))
        total = totals.setdefault((series.metric, series.definition), {})
        for group, row in groups.items():
            total[group] = total[group] + row if group in total else row
    for (metric, definition), groups in totals.items():
        found.append(_course(tuple(ALL for _ in segment), metric, definition, groups, last, seconds))
    return found


@lru_cache(maxsize=2048)
def _interval(moments: Moments, low: float, high: float) -> Interval:
    """An interval takes a third of a millisecond, and most points are those of the last time."""
    return score_interval(moments, low, high)


def _course(
    segment: Segment, metric: str, definition: str, groups: dict[int, Sums], last: int, seconds: float
) -> Course:
    length = seconds / POINTS
    return Course(
        segment,
        metric,
        definition,
        tuple(_point(metric, group * length, length, groups.get(group)) for group in range(last - POINTS, last + 1)),
    )


def _point(metric: str, start: float, length: float, sums: Sums | None) -> Point:
    if sums is None or sums[0] == 0.0:
        return Point(start, start + length, 0, None, None, None)
    range_ = range_of(metric)
    moments = Moments(*(float(x) for x in sums))
    interval = _interval(moments, range_.low, range_.high)
    mean = min(max(moments.mean, range_.low), range_.high)
    return Point(start, start + length, int(moments.n), mean, interval.low, interval.high)
