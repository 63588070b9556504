"""The Wasserstein distance between two one-dimensional distributions of which only histograms are known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping


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
    edges = [low, *bounds]
    return sum(
        (right - left) * _area(before, after)
        for (left, right), (before, after) in zip(itertools.pairwise(edges), itertools.pairwise(gaps), strict=True)
    )


def _area(before: float, after: float) -> float:
    """The mean of |x| on the straight line from `before` to `after`."""
    if before * after >= 0.0:
        return (abs(before) + abs(after)) / 2.0
    return (before * before + after * after) / (2.0 * (abs(before) + abs(after)))
