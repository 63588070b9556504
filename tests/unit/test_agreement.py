"""Agreement statistics against scipy and scikit-learn, which are not needed at run time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from metrics.agreement import (
    Estimate,
    answers_needed,
    auroc,
    auroc_estimate,
    balanced_accuracy,
    disagreements,
    estimate,
    kendall,
    reliability,
    resampled,
    spearman,
)

sides = st.integers(2, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(-3, 12), min_size=n, max_size=n) for _ in range(2)))
)


@given(sides)
def test_rank_correlations_are_those_of_scipy(both: tuple[list[int], list[int]]) -> None:
    x, y = (np.array(side, np.float64) / 7 for side in both)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert spearman(x, y) is None
        assert kendall(x, y) is None
        return
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)


def test_kendall_holds_for_thousands_of_different_values() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(5000)
    y = x + rng.standard_normal(5000)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@given(sides)
def test_auroc_is_the_chance_that_good_scores_above_bad(both: tuple[list[int], list[int]]) -> None:
    scores, good = np.array(both[0], np.float64), np.array(both[1]) > 4
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[good] for b in scores[~good]]
    assert auroc(scores, good) == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)
    if min(good.sum(), (~good).sum()) >= 2:
        assert auroc_estimate(scores[good], scores[~good]).value == pytest.approx(sum(pairs) / len(pairs))


def test_intervals_cover_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    truth = stats.norm.cdf(1.0 / math.sqrt(2.0))
    inside = 0
    for _ in range(400):
        found = auroc_estimate(rng.normal(1.0, 1.0, 40), rng.normal(0.0, 1.0, 30))
        inside += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert 0.91 <= inside / 400 <= 0.98


def test_whole_groups_are_drawn_so_repeated_answers_promise_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal(40)
    y = x + rng.standard_normal(40)
    many_x, many_y = np.repeat(x, 10), np.repeat(y, 10)
    groups = [str(k // 10) for k in range(400)]

    def width(xs: np.ndarray, ys: np.ndarray, names: list[str]) -> float:
        drawn = resampled({"rho": lambda rows: spearman(xs[rows], ys[rows])}, names, 500)["rho"]
        found = estimate(0.7, drawn)
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    alone = width(x, y, [str(k) for k in range(40)])
    assert width(many_x, many_y, groups) == pytest.approx(alone, rel=0.15)
    assert width(many_x, many_y, [str(k) for k in range(400)]) < alone / 2


def test_without_enough_resamples_there_is_no_interval() -> None:
    one_bad = np.array([True] * 9 + [False])
    drawn = resampled({"auroc": lambda rows: auroc(np.arange(10.0)[rows], one_bad[rows])}, list("abcdefghij"), 200)
    assert np.isnan(drawn["auroc"]).any()
    assert estimate(0.5, np.full(200, np.nan)) == Estimate(0.5, None, None)
    assert resampled({"n": lambda rows: float(len(rows))}, [], 10)["n"].shape == (10,)


def test_balanced_accuracy_flags_as_the_stream_does() -> None:
    scores = np.array([0.2, 0.7495, 0.6, 0.9])
    good = np.array([False, True, True, True])
    assert balanced_accuracy(scores, good, 0.75) == pytest.approx((1.0 + 2 / 3) / 2)
    assert balanced_accuracy(scores, np.array([True] * 4), 0.75) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=80))
def test_reliability_bins_hold_every_answer_once_and_do_not_part_equal_scores(rows: list[tuple[int, bool]]) -> None:
    scores, good = np.array([s / 6 for s, _ in rows]), np.array([g for _, g in rows])
    bins = reliability(scores, good)
    assert sum(b.n for b in bins) == len(rows)
    assert sum(b.good * b.n for b in bins) == pytest.approx(good.sum())
    assert all(one.high < other.low for one, other in itertools.pairwise(bins))
    assert all(b.good_low <= b.good <= b.good_high for b in bins)


@given(sides)
def test_the_strongest_disagreements_come_first(both: tuple[list[int], list[int]]) -> None:
    x, y = (np.array(side, np.float64) for side in both)
    assume(len(set(both[0])) > 1)
    rows = disagreements(x, y, 5)
    gaps = [abs(stats.rankdata(x)[r] - stats.rankdata(y)[r]) for r in rows]
    assert gaps == sorted(gaps, reverse=True)
    assert disagreements(x, x, 5) == []


def test_answers_needed_falls_with_the_correlation() -> None:
    assert answers_needed(0.0) > answers_needed(0.5) > answers_needed(0.9) >= 10
    assert 380 <= answers_needed(0.0) <= 392
