"""Drift as the overview tells it: one line a comparison, and for each segment what has drifted furthest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metrics.answer import Segment
from metrics.drift_watch import DriftKey, DriftReading


@dataclass(frozen=True, slots=True)
class Distance:
    """One statistic of a comparison; `drifted`: above what it stays under where nothing drifts."""

    statistic: str
    value: float
    null_high: float
    drifted: bool

    @property
    def ratio(self) -> float:
        return self.value / self.null_high if self.null_high else 0.0


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One comparison: its distances, the furthest first. `samples`: of the side that has fewer."""

    key: DriftKey
    segment: str
    distances: list[Distance]
    samples: float

    @property
    def furthest(self) -> Distance:
        return self.distances[0]

    @property
    def drifted(self) -> bool:
        return any(distance.drifted for distance in self.distances)


@dataclass(frozen=True, slots=True)
class SegmentDrift:
    """`compared`: how many comparisons there are; `lines`: for each score or sketch that has drifted, the furthest."""

    compared: int
    lines: list[DriftLine]


def drift_lines(readings: Iterable[DriftReading], names: dict[Segment, str]) -> list[DriftLine]:
    """What has drifted comes first, the furthest first. `names`: of the segments."""
    lines = [
        DriftLine(
            reading.key,
            names[reading.key.segment],
            sorted(
                (
                    Distance(statistic, value, reading.null_high[statistic], value > reading.null_high[statistic])
                    for statistic, value in reading.values.items()
                ),
                key=lambda distance: (not distance.drifted, -distance.ratio),
            ),
            min(reading.recent, reading.reference),
        )
        for reading in readings
        if reading.values
    ]
    return sorted(lines, key=_order)


def drift_of(lines: Sequence[DriftLine], segment: Segment, window: str) -> SegmentDrift:
    """What `lines` say of a segment: over `window` where that is compared, else over all that are."""
    own = [line for line in lines if line.key.segment == segment]
    own = [line for line in own if line.key.window == window] or own
    furthest: dict[str, DriftLine] = {}
    for line in own:
        if line.drifted:
            furthest.setdefault(line.key.what, line)
    return SegmentDrift(len(own), list(furthest.values()))


def _order(line: DriftLine) -> tuple[bool, float]:
    return not line.drifted, -line.furthest.ratio
