"""How far the distribution of a score has moved from another one, and how far chance alone would have moved it.

Three statistics of two weighted histograms over the same bins: the Population Stability Index (PSI), the
Kolmogorov-Smirnov distance and the Wasserstein distance. Beside each stands what it stays under, in 99 of 100 cases,
where nothing has drifted, at these numbers of samples: without it every small sample would look like drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.normals import fixed_normals
from metrics.ranges import Range
from metrics.wasserstein import between_curves

Array = npt.NDArray[np.float64]

NULL_LEVEL = 0.99
_Z99 = 2.3263478740408408
PSI_GROUPS = 10
"""Bins are joined into about so many groups of equal mass in the reference: the custom that PSI is read by (0.1 is
something, 0.25 is a lot)."""
DRAWS = 1000
SEED = 20261129


@dataclass(frozen=True, slots=True)
class Sample:
    """A weighted histogram over the bins of the metric's range: `masses` (any scale, shape (bins,)), how many scores it
    rests on, and how many scores of equal weight would say as much (Kish's n)."""

    masses: Array
    samples: int
    effective: float

    @property
    def shares(self) -> Array:
        return np.asarray(self.masses / self.masses.sum())


@dataclass(frozen=True, slots=True)
class Statistics:
    """`psi` >= 0, `ks` in [0, 1], `wasserstein` in the unit of the score."""

    psi: float
    ks: float
    wasserstein: float


def drift(recent: Sample, reference: Sample, range_: Range) -> Statistics:
    """How far `recent` is from `reference`. Neither may be empty."""
    one, other = recent.shares, reference.shares
    # Sums of shares end a little above 1 at times; no two curves of shares lie further apart than 1.
    gaps = np.clip(np.cumsum(one) - np.cumsum(other), -1.0, 1.0)
    return Statistics(
        _psi(recent, reference),
        float(np.abs(gaps).max()),
        float(between_curves(np.concatenate([[0.0], gaps]), np.asarray(range_.edges))),
    )


class NullLevels:
    """What the statistics stay under in 99 of 100 comparisons without drift.

    PSI: chi-squared with one degree of freedom less than groups, times 1/n + 1/m (Yurdakul, "Statistical properties of
    Population Stability Index", 2018). The two others: the difference of two empirical distribution functions is a
    Brownian bridge over the common distribution, times sqrt(1/n + 1/m); its largest and its mean absolute value are
    simulated, with the same draws for all.
    """

    def __init__(self) -> None:
        self._draws: dict[int, Array] = {}

    def of(self, recent: Sample, reference: Sample, range_: Range) -> Statistics:
        """For two samples of these sizes from one distribution, which is estimated from both together."""
        n, m = recent.effective, reference.effective
        common = (n * recent.shares + m * reference.shares) / (n + m)
        scale = math.sqrt(1.0 / n + 1.0 / m)
        groups = int(_groups(reference.shares).max()) + 1
        normals = self._normals(range_.bins)
        steps = normals * np.sqrt(common)
        steps -= steps.sum(axis=1, keepdims=True) * common
        bridges = np.concatenate([np.zeros((DRAWS, 1)), np.cumsum(steps, axis=1)], axis=1)
        distances = between_curves(bridges, np.asarray(range_.edges))
        return Statistics(
            scale * scale * _chi_squared(groups - 1),
            # The tie of a score with itself: an empirical distribution function moves in whole scores.
            min(scale * _high(np.abs(bridges).max(axis=1)), 1.0),
            scale * _high(distances),
        )

    def _normals(self, bins: int) -> Array:
        if bins not in self._draws:
            self._draws[bins] = fixed_normals(SEED, DRAWS, bins)
        return self._draws[bins]


def _high(draws: Array) -> float:
    """The quantile at NULL_LEVEL, by the two draws beside it. numpy's own loads its masked arrays: 2 MB."""
    place = NULL_LEVEL * (len(draws) - 1)
    below = int(place)
    ordered = np.partition(draws, (below, below + 1))
    return float(ordered[below] + (place - below) * (ordered[below + 1] - ordered[below]))


def _psi(recent: Sample, reference: Sample) -> float:
    """With half a score added to every group of both, so that an empty group is no infinity."""
    groups = _groups(reference.shares)
    number = int(groups.max()) + 1
    one, other = (
        (np.bincount(groups, sample.shares, number) * sample.effective + 0.5) / (sample.effective + 0.5 * number)
        for sample in (recent, reference)
    )
    return float(((one - other) * np.log(one / other)).sum())


def _groups(shares: Array) -> npt.NDArray[np.intp]:
    """By bin, the number of its group: neighbouring bins, of a tenth of the reference each where that is possible.

    A bin that holds a tenth or more by itself (graded scores have such) begins a group, so that what is below it is not
    hidden in it, though the reference has nothing there.
    """
    passed = 0.0
    group, groups = 0, np.empty(len(shares), np.intp)
    for place, share in enumerate(shares.tolist()):
        if place and (passed >= 1.0 / PSI_GROUPS - 1e-9 or share >= 1.0 / PSI_GROUPS):
            group, passed = group + 1, 0.0
        groups[place] = group
        passed += share
    return groups


def _chi_squared(degrees: int) -> float:
    """The 99 % quantile of chi-squared (Wilson and Hilferty, PNAS 17, 1931); 0 for no degree of freedom."""
    if degrees < 1:
        return 0.0
    part = 2.0 / (9.0 * degrees)
    return degrees * (1.0 - part + _Z99 * math.sqrt(part)) ** 3
