"""Intervals of weighted means: never outside the range, never of width 0, and they cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.beta import beta_quantile, incomplete_beta
from metrics.interval import Moments, quantile, score_interval
from tests.simulated_intervals import coverage_and_width, score_intervals
from tests.simulated_windows import BARRED, DESIGNS, Cell, draw, moments_of


def moments(scores: list[float], weights: list[float]) -> Moments:
    return moments_of(np.asarray([scores]), np.asarray([weights]))[0]


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


def test_yes_no_scores_of_equal_weight_give_about_the_interval_of_jeffreys() -> None:
    # 81 of 263: an often printed example, [0.2545, 0.3657].
    interval = score_interval(moments([1.0] * 81 + [0.0] * 182, [1.0] * 263), 0.0, 1.0)
    assert interval.low == pytest.approx(0.2545, abs=2e-3)
    assert interval.high == pytest.approx(0.3657, abs=2e-3)


def test_sums_of_weights_may_be_left_out_where_all_are_equal() -> None:
    full = moments([1.0, 0.8, 0.2, 0.9], [5.0] * 4)
    short = Moments(full.n, full.w, full.w2, full.ws, full.s, full.s2)
    assert score_interval(short, 0.0, 1.0).low == pytest.approx(score_interval(full, 0.0, 1.0).low)


def test_a_cosine_is_treated_on_its_own_range() -> None:
    share = score_interval(moments([0.2, 0.9, 0.7], [1.0, 5.0, 2.0]), 0.0, 1.0)
    cosine = score_interval(moments([-0.6, 0.8, 0.4], [1.0, 5.0, 2.0]), -1.0, 1.0)
    assert cosine.low == pytest.approx(2 * share.low - 1)
    assert cosine.high == pytest.approx(2 * share.high - 1)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("graded", [False, True], ids=["yes/no", "graded"])
def test_many_intervals_at_once_are_those_of_one_at_a_time(design: str, graded: bool) -> None:
    """The bench and the tests below judge the arithmetic on arrays; the product does one window at a time."""
    for n in (3, 50):
        scores, weights = draw(Cell(design, graded, 0.95, n), 60, np.random.default_rng([2, n]))
        low, high = score_intervals(scores, weights)
        ours = [score_interval(each, 0.0, 1.0) for each in moments_of(scores, weights)]
        assert low == pytest.approx([each.low for each in ours], abs=1e-9)
        assert high == pytest.approx([each.high for each in ours], abs=1e-9)


CELLS = [
    Cell(design, graded, mean, n)
    for design in BARRED
    for graded in (False, True)
    for mean, n in ((0.95, 20), (0.95, 50), (0.95, 200), (0.5, 20), (0.5, 200))
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_95_means_95_and_the_mean_has_no_bias(cell: Cell) -> None:
    """2,000 windows a cell: three standard errors of a coverage of 93 % are 0.017. Beside the rivals, and for larger n:
    tests/bench/statistics.py."""
    scores, weights = draw(cell, 2000, np.random.default_rng([20261130, *map(ord, str(cell))]))
    coverage, _ = coverage_and_width(score_intervals(scores, weights), cell.mean)
    assert coverage >= 0.93 - 0.01
    total = weights.sum(axis=1)
    if (total**2 / (weights**2).sum(axis=1)).mean() >= 100.0:
        assert coverage <= 0.975 + 0.007
    means = (weights * scores).sum(axis=1) / total
    assert abs(means.mean() - cell.mean) <= max(0.002, 3 * means.std() / 2000**0.5)


@pytest.mark.parametrize(
    "cell", [Cell("stratified_better", False, 0.95, 50), Cell("skewed_worse", False, 0.5, 50)], ids=str
)
def test_where_weights_go_with_the_scores_it_still_covers(cell: Cell) -> None:
    """Wilson's interval on Kish's n times the ratio of variances, the one of before, covered 83 % and less here."""
    scores, weights = draw(cell, 2000, np.random.default_rng([20261130, *map(ord, str(cell))]))
    assert coverage_and_width(score_intervals(scores, weights), cell.mean)[0] >= 0.93 - 0.01


def test_a_few_bad_answers_of_small_weight_do_not_promise_that_there_are_no_others() -> None:
    """Half of the sample stands for 20 of 21 answers, and all of that half are good; the others count little."""
    interval = score_interval(moments([1.0] * 25 + [1.0] * 18 + [0.0] * 7, [20.0] * 25 + [1.0] * 25), 0.0, 1.0)
    assert interval.low < 0.93


@given(st.floats(0.02, 0.98), st.floats(-0.7, 4.0), st.floats(-0.7, 4.0))
def test_beta_quantiles_are_inverse_to_the_distribution_function(p: float, a: float, b: float) -> None:
    first, second = 10**a, 10**b
    x = beta_quantile(p, first, second)
    assert 0.0 <= x <= 1.0
    if 1e-12 < x < 1.0 - 1e-9:
        assert incomplete_beta(x, first, second) == pytest.approx(p, abs=1e-5)


def test_beta_quantiles_of_simple_shapes() -> None:
    assert beta_quantile(0.3, 1.0, 1.0) == pytest.approx(0.3)
    assert beta_quantile(0.25, 2.0, 1.0) == pytest.approx(0.5)
    assert beta_quantile(0.975, 0.5, 0.5) == pytest.approx(math.sin(0.975 * math.pi / 2) ** 2)


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
