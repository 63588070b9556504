"""How far what people ask now is from what they asked then: a distance between two samples of embedding sketches.

Maximum mean discrepancy (MMD; Gretton et al., JMLR 13, 2012) with a Gaussian kernel, through random Fourier features
(Rahimi and Recht, NIPS 2007), so that its cost is linear in the samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from metrics.normals import fixed_normals
from metrics.sketch import DIMENSION

Points = npt.NDArray[np.float32]

FREQUENCIES = 128
SEED = 20261129
LEAST_POINTS = 32
"""With fewer there is no distance."""
_Z99 = 2.3263478740408408


@dataclass(frozen=True, slots=True)
class Distance:
    """`mmd` in [0, 1.42], an unbiased estimate of its square cut off at 0; `null_high`: what it stays under in 99 of
    100 comparisons of samples of these sizes from one distribution."""

    mmd: float
    null_high: float


def sketch_distance(recent: Points, reference: Points) -> Distance | None:
    """The distance between two samples, each shape (n, 32); None where one has fewer than 32 points.

    The kernel's width is the median distance of points of the reference. Without drift the squared MMD is a weighted
    sum of chi-squared variables; its level is that of a scaled chi-squared with the same mean and variance (Box,
    Annals of Mathematical Statistics 25, 1954).
    """
    n, m = len(recent), len(reference)
    if min(n, m) < LEAST_POINTS:
        return None
    width = _median_distance(reference)
    if width <= 0.0:
        return None
    one, other = _features(recent / width), _features(reference / width)
    gap = one.mean(axis=0) - other.mean(axis=0)
    both = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)])
    covariance = both.T @ both / (n + m - 2)
    expected = float(np.trace(covariance)) * (1.0 / n + 1.0 / m)
    squared = float(gap @ gap) - float(one.var(axis=0).sum()) / (n - 1) - float(other.var(axis=0).sum()) / (m - 1)
    deviation = math.sqrt(2.0 * float((covariance * covariance).sum())) * (1.0 / n + 1.0 / m)
    degrees = 2.0 * (expected / deviation) ** 2
    part = 2.0 / (9.0 * degrees)
    high = expected * ((1.0 - part + _Z99 * math.sqrt(part)) ** 3 - 1.0)
    return Distance(math.sqrt(max(squared, 0.0)), math.sqrt(high))


def _median_distance(points: Points) -> float:
    some = points[:: max(len(points) // 128, 1)].astype(np.float64)
    squares = (some * some).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2.0 * some @ some.T
    pairs = distances[np.triu_indices(len(some), 1)]
    return math.sqrt(max(float(np.partition(pairs, len(pairs) // 2)[len(pairs) // 2]), 0.0))


def _features(points: Points) -> npt.NDArray[np.float64]:
    """cos and sin of random projections, shape (n, 2 * FREQUENCIES), of squared length 1."""
    angles = points.astype(np.float64) @ _frequencies()
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(FREQUENCIES)


@lru_cache(maxsize=1)
def _frequencies() -> npt.NDArray[np.float64]:
    return fixed_normals(SEED, DIMENSION, FREQUENCIES)
