"""What a contrast needs of the scores of one span of time: sums by label, no scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metrics.interval import Moments

MAX_DIMENSIONS = 20
MAX_VALUES = 200
"""Of one dimension; further ones are taken together."""
ABSENT = "(none)"
"""The value of a label that a record does not have."""
OTHERS = "(others)"
_SIGNED = (3, 4, 8)
"""Places of the sums that hold a score to the first power."""


class SpanSums:
    """What a contrast needs of the scores of one span, under one definition."""

    __slots__ = ("_total", "_values", "first", "last")

    def __init__(self) -> None:
        self._total = [0.0] * 10
        self._values: dict[str, dict[str, list[float]]] = {}
        self.first: float | None = None
        self.last: float | None = None
        """Event times of the scores at both ends, in seconds since the epoch."""

    @property
    def n(self) -> int:
        return int(self._total[0])

    @property
    def moments(self) -> Moments:
        return Moments(*self._total)

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(self._values)

    def add(self, labels: Mapping[str, str], value: float, weight: float, at: float) -> None:
        """One score of an answer with these labels; `weight`: 1 / its inclusion probability."""
        square = weight * weight
        row = (
            1.0, weight, square, weight * value, value, value * value,
            square * weight, square * square, square * value, square * value * value,
        )  # fmt: skip
        _plus(self._total, row)
        for dimension, name in labels.items():
            held = self._values.get(dimension)
            if held is None:
                if len(self._values) >= MAX_DIMENSIONS:
                    continue
                held = self._values[dimension] = {}
            if name not in held and len(held) >= MAX_VALUES:
                name = OTHERS
            sums = held.get(name)
            if sums is None:
                sums = held[name] = [0.0] * 10
            _plus(sums, row)
        self.first = at if self.first is None else min(self.first, at)
        self.last = at if self.last is None else max(self.last, at)

    def values(self, dimension: str) -> dict[str, list[float]]:
        """The sums by value; answers without the label are `ABSENT`."""
        held = dict(self._values.get(dimension, {}))
        unlabelled = self._total[0] - sum(sums[0] for sums in held.values())
        if unlabelled > 0.5:
            rest = list(self._total)
            for sums in held.values():
                _plus(rest, [-each for each in sums])
            # What is left of a subtraction may lie a little below 0, which no sum of squares or weights does.
            held[ABSENT] = [max(each, 0.0) if place not in _SIGNED else each for place, each in enumerate(rest)]
        return held


def sum_of(held: Mapping[str, list[float]], names: Sequence[str]) -> Moments:
    total = [0.0] * 10
    for name in names:
        if name in held:
            _plus(total, held[name])
    return Moments(*total)


def added(parts: Sequence[Moments]) -> Moments:
    columns = [[getattr(one, name) for one in parts] for name in Moments.__slots__]
    return Moments(*map(sum, columns))


def _plus(sums: list[float], row: Sequence[float]) -> None:
    for place, value in enumerate(row):
        sums[place] += value
