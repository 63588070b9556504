"""The Wasserstein distance between two one-dimensional distributions of which only histograms are known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def wasserstein(one: Mapping[float, float], other: Mapping[float, float], low: float) -> float:
    """How far the mass of `one` must be moved on average to become `other`, in the unit of the bounds.

    Both are cumulative counts by upper bound, as Prometheus exposes them, over the same finite bounds; infinity is
    ignored. Mass lies evenly within its bucket, and `low` is where the first bucket begins. W1 = ∫|F - G| (Vallender,
    Theory of Probability and its Applications 18, 1974).

    >>> round(wasserstein({1.0: 8, 2.0: 8}, {1.0: 0, 2.0: 4}, 0.0), 6)
    1.0

    Raises:
        ValueError: other bounds, or an empty histogram.
    """
    bounds = sorted(bound for bound in one if bound != float("inf"))
    if bounds != sorted(bound for bound in other if bound != float("inf")):
        raise ValueError("the histograms have different bounds")
    if not bounds or not one[bounds[-1]] or not other[bounds[-1]]:
        raise ValueError("an empty histogram has no distance to another")
    gaps = [0.0, *(one[b] / one[bounds[-1]] - other[b] / other[bounds[-1]] for b in bounds)]
    return float(between_curves(np.asarray(gaps), np.asarray([low, *bounds])))


def between_curves(gaps: Array, edges: Array) -> Array:
    """∫|F - G| of curves that are straight between `edges`, shape (n,), and differ by `gaps`, shape (..., n), there."""
    before, after = gaps[..., :-1], gaps[..., 1:]
    total = np.abs(before) + np.abs(after)
    # The mean of |x| on the straight line from `before` to `after`, which may cross 0.
    crossed = (before * before + after * after) / (2.0 * np.where(total > 0.0, total, 1.0))
    means = np.where(before * after >= 0.0, total / 2.0, crossed)
    return np.asarray((means * np.diff(edges)).sum(axis=-1))
