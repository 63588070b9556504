"""Intervals of weighted means: never outside the range, never of width 0, and they cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.interval import Moments, quantile, score_interval


def moments(scores: list[float], weights: list[float]) -> Moments:
    s, w = np.asarray(scores), np.asarray(weights)
    return Moments(
        float(len(s)), float(w.sum()), float((w * w).sum()), float((w * s).sum()), float(s.sum()), float((s * s).sum())
    )


@given(st.lists(st.tuples(st.floats(0, 1, allow_subnormal=False), st.floats(1e-4, 1.0)), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_stays_in_the_range_and_has_a_width(pairs: list[tuple[float, float]]) -> None:
    sums = moments([score for score, _ in pairs], [1 / p for _, p in pairs])
    interval = score_interval(sums, 0.0, 1.0)
    assert 0.0 <= interval.low <= sums.mean + 1e-12
    assert sums.mean - 1e-12 <= interval.high <= 1.0
    assert interval.high - interval.low > 0.0


@pytest.mark.parametrize("score", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_equal_scores_still_have_an_interval(score: float, n: int) -> None:
    interval = score_interval(moments([score] * n, [20.0] * n), 0.0, 1.0)
    assert interval.low <= score <= interval.high
    assert interval.high - interval.low > 1e-7


def test_one_sample_says_almost_nothing() -> None:
    interval = score_interval(moments([0.5], [1.0]), 0.0, 1.0)
    assert interval.high - interval.low > 0.75


def test_yes_no_scores_of_equal_weight_give_the_interval_of_wilson() -> None:
    # 81 of 263: an often printed example, [0.2553, 0.3662].
    interval = score_interval(moments([1.0] * 81 + [0.0] * 182, [1.0] * 263), 0.0, 1.0)
    assert interval.low == pytest.approx(0.2553, abs=2e-4)
    assert interval.high == pytest.approx(0.3662, abs=2e-4)


def test_a_cosine_is_treated_on_its_own_range() -> None:
    share = score_interval(moments([0.2, 0.9, 0.7], [1.0, 5.0, 2.0]), 0.0, 1.0)
    cosine = score_interval(moments([-0.6, 0.8, 0.4], [1.0, 5.0, 2.0]), -1.0, 1.0)
    assert cosine.low == pytest.approx(2 * share.low - 1)
    assert cosine.high == pytest.approx(2 * share.high - 1)


@pytest.mark.parametrize("graded", [False, True], ids=["yes_no", "graded"])
@pytest.mark.parametrize(
    ("design", "mean", "n"),
    [
        ("uniform", 0.95, 50),
        ("uniform", 0.5, 20),
        ("uniform", 0.5, 500),
        ("stratified", 0.95, 50),
        ("stratified", 0.5, 200),
    ],
)
def test_nominal_95_covers_at_least_93(design: str, mean: float, n: int, graded: bool) -> None:
    """2,000 simulated windows. Stratified: a worse stratum of 1/21 of the traffic is sampled 20 times as often."""
    rng = np.random.default_rng(20261129)
    covered = 0
    for _ in range(2000):
        if design == "uniform":
            weights, expected = np.full(n, 20.0), np.full(n, mean)
        else:
            common = rng.random(n) < 0.5
            weights = np.where(common, 20.0, 1.0)
            worse = mean - 0.2
            expected = np.where(common, (mean - worse / 21) * 21 / 20, worse)
        if graded:
            statements = rng.integers(3, 6, n)
            scores = rng.binomial(statements, expected) / statements
        else:
            scores = (rng.random(n) < expected).astype(float)
        interval = score_interval(moments(scores.tolist(), weights.tolist()), 0.0, 1.0)
        covered += interval.low <= mean <= interval.high
    assert covered / 2000 >= 0.93


def test_the_quantile_is_where_the_weight_is() -> None:
    assert quantile([0.0, 10.0, 0.0], [0.0, 0.2, 0.4, 0.6], 0.1) == pytest.approx(0.22)
    assert quantile([1.0, 0.0, 9.0], [0.0, 0.2, 0.4, 0.6], 0.1) == pytest.approx(0.2)
    assert quantile([0.0, 0.0, 5.0], [0.0, 0.2, 0.4, 0.6], 1.0) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="without weight"):
        quantile([0.0, 0.0], [0.0, 0.5, 1.0], 0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_the_quantile_is_within_one_bin_of_the_exact_one(scores: list[float]) -> None:
    edges = [i / 50 for i in range(51)]
    bins = [0.0] * 50
    for score in scores:
        bins[min(int(score * 50), 49)] += 1.0
    exact = sorted(scores)[max(math.ceil(0.1 * len(scores)) - 1, 0)]
    assert quantile(bins, edges, 0.1) == pytest.approx(exact, abs=0.0201)


def test_scores_next_to_nothing_have_an_interval_too() -> None:
    """The square of 5e-324 is 0, and so was what it was divided by."""
    value = 5e-324
    interval = score_interval(Moments(n=2, w=2.0, w2=2.0, ws=2 * value, s=2 * value, s2=0.0), 0.0, 1.0)
    assert interval.low <= value <= interval.high < 1.0
