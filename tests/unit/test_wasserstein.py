"""The distance between histograms: a distance, and that of the answers behind them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.wasserstein import wasserstein

CDF = st.lists(st.integers(0, 50), min_size=4, max_size=4).filter(any)


def histogram(counts: list[int]) -> dict[float, float]:
    below = [float(number) for number in itertools.accumulate(counts)]
    return dict(zip((0.1, 0.2, 0.5, 2.0, float("inf")), [*below, below[-1]], strict=True))


@given(CDF, CDF, CDF)
def test_the_wasserstein_distance_is_a_distance(a: list[int], b: list[int], c: list[int]) -> None:
    one, two, three = map(histogram, (a, b, c))
    assert wasserstein(one, one, 0.0) == 0.0
    assert wasserstein(one, two, 0.0) == pytest.approx(wasserstein(two, one, 0.0))
    assert wasserstein(one, three, 0.0) <= wasserstein(one, two, 0.0) + wasserstein(two, three, 0.0) + 1e-9


@given(CDF, CDF)
def test_the_wasserstein_distance_is_that_of_evenly_spread_answers(a: list[int], b: list[int]) -> None:
    # Each answer of one histogram is paired with the answer of the other at the same rank.
    edges = (0.0, 0.1, 0.2, 0.5, 2.0)
    ranks = [(i + 0.5) / 4000 for i in range(4000)]

    def at_rank(counts: list[int], rank: float) -> float:
        left = rank * sum(counts)
        for (low, high), n in zip(itertools.pairwise(edges), counts, strict=True):
            if left <= n and n:
                return low + (high - low) * left / n
            left -= n
        return edges[-1]

    expected = sum(abs(at_rank(a, rank) - at_rank(b, rank)) for rank in ranks) / len(ranks)
    assert wasserstein(histogram(a), histogram(b), 0.0) == pytest.approx(expected, abs=0.005)


def test_histograms_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="different bounds"):
        wasserstein({0.1: 1}, {0.2: 1}, 0.0)
    with pytest.raises(ValueError, match="empty"):
        wasserstein({0.1: 1}, {0.1: 0}, 0.0)
