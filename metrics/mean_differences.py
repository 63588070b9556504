"""Tests and intervals of sums and differences of independent weighted means, and of many of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metrics.interval import Z95, Moments, score_interval, standard_error

_FAR = 6.0
"""Standard deviations beyond which a p-value is no longer told apart."""
_STEPS = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """The scores behind one mean; [low, high] is the metric's range."""

    moments: Moments
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Test:
    """A quantity with its 95 % interval, and the p-value of its being 0."""

    size: float
    low: float
    high: float
    p: float


Terms = Sequence[tuple[float, Cell]]
"""Coefficients and means."""


def difference_test(terms: Terms, beside: Terms = ()) -> Test:
    """Of Σ c·mean over both. `beside` holds many means of which each counts little: their sum is taken to be normal.

    The limits are those of MOVER (Zou and Donner, Statistics in Medicine 27, 2008): the distances from each mean to the
    ends of its own interval, which may be skewed, are added in squares. The p-value is that of the level at which the
    interval touches 0.
    """
    size = sum(c * cell.moments.mean for c, cell in (*terms, *beside))
    variance = sum((c * standard_error(cell.moments, cell.low, cell.high)) ** 2 for c, cell in beside)

    def ends(z: float) -> tuple[float, float]:
        level = 1.0 - _two_sided(z)
        down = up = variance * z * z
        for c, cell in terms:
            interval = score_interval(cell.moments, cell.low, cell.high, level)
            mean = cell.moments.mean
            low, high = (interval.low, interval.high) if c > 0.0 else (interval.high, interval.low)
            down += (c * (mean - low)) ** 2
            up += (c * (high - mean)) ** 2
        return size - math.sqrt(down), size + math.sqrt(up)

    low, high = ends(Z95)
    z = Z95
    for _ in range(_STEPS):
        # How far an end is away is all but proportional to z.
        low_there, high_there = ends(z)
        before, z = z, min(z * abs(size) / max(size - low_there if size > 0.0 else high_there - size, 1e-300), _FAR)
        if abs(z - before) <= 1e-3 * z:
            break
    return Test(size, low, high, _two_sided(z))


def linear_test(size: float, variance: float) -> Test:
    """Of a quantity whose estimate is taken to be normal."""
    error = math.sqrt(max(variance, 0.0))
    p = _two_sided(min(abs(size) / error, _FAR)) if error > 0.0 else 1.0
    return Test(size, size - Z95 * error, size + Z95 * error, p)


def holm(values: Sequence[float]) -> list[float]:
    """p-values adjusted so that with a level of 5 % there is any wrong one in 5 % of cases at most (Holm, 1979).

    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted


def _two_sided(z: float) -> float:
    """Probability that a standard normal lies further than `z` from 0."""
    return math.erfc(z / math.sqrt(2.0))
