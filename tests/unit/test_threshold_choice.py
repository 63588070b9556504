"""Thresholds keep what they promise on answers that they were not set from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.flags import MARGIN
from metrics.threshold_choice import Answers, Chosen, NotChosen, Rule, choose, parse_rule

ALARMS = Rule("false_alarms", 0.05)


def answers(scores: np.ndarray | list[float]) -> Answers:
    values = np.asarray(scores, np.float64)
    return Answers(values, np.arange(len(values), dtype=np.int64) % 10)


NONE = answers([])


def chosen(good: Answers, bad: Answers = NONE, rule: Rule = ALARMS, bad_share: float | None = None) -> Chosen:
    found = choose(good, bad, rule, 0.05, bad_share, 1.0)
    assert isinstance(found, Chosen)
    return found


@pytest.mark.parametrize("n", [19, 20, 59, 100, 333])
def test_no_more_false_alarms_than_asked_for_on_further_answers(n: int) -> None:
    rng = np.random.default_rng(n)
    shares = []
    for _ in range(1500):
        found = chosen(answers(rng.beta(8, 2, n)))
        shares.append((rng.beta(8, 2, 400) < found.value - MARGIN).mean())
    assert np.mean(shares) <= 0.05 + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) >= 0.05 * 0.6


def test_in_expectation_it_is_k_of_n_plus_1_for_scores_with_few_values_at_most() -> None:
    rng = np.random.default_rng(7)
    found = chosen(answers(rng.integers(0, 5, 200) / 4))
    assert found.operating.false_alarms <= 0.05
    assert chosen(answers([1.0] * 100)).value == 1.0  # never above the range, so 4 of 5 supported is flagged
    assert chosen(answers([1.0] * 100)).operating.false_alarms == 0.0


@given(st.lists(st.integers(0, 20), min_size=19, max_size=120), st.sampled_from([0.05, 0.1, 0.2]))
def test_the_good_answers_at_hand_are_flagged_no_more_often(scores: list[int], alarms: float) -> None:
    found = chosen(answers([s / 20 for s in scores]), rule=Rule("false_alarms", alarms))
    assert found.operating.false_alarms <= alarms
    assert found.value <= 1.0


def test_too_few_good_answers_give_no_threshold_and_say_how_many_would() -> None:
    found = choose(answers(np.linspace(0, 1, 18)), NONE, ALARMS, 0.05, None, 1.0)
    assert found == NotChosen("18 good answers are too few for 0.05 false alarms: at least 19 are needed")


def overlapping(n: int = 400) -> tuple[Answers, Answers]:
    rng = np.random.default_rng(2)
    return answers(rng.normal(0.8, 0.08, n).clip(0, 1)), answers(rng.normal(0.65, 0.08, n // 2).clip(0, 1))


def test_balanced_lies_between_the_two_and_says_what_it_does() -> None:
    good, bad = overlapping()
    found = chosen(good, bad, Rule("balanced"))
    assert found.value - MARGIN == pytest.approx(0.725, abs=0.02)
    operating = found.operating
    assert operating.recall == pytest.approx(0.83, abs=0.05)
    assert operating.false_alarms == pytest.approx(0.17, abs=0.05)
    assert operating.auroc == pytest.approx(0.907, abs=0.02)
    assert operating.held_out_recall is not None
    assert operating.held_out_recall <= (operating.recall or 0) + 0.02
    assert operating.bad_share == pytest.approx(1 / 3)


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95])
def test_recall_and_precision_are_kept(target: float) -> None:
    good, bad = overlapping()
    recall = chosen(good, bad, Rule("recall", target)).operating
    assert recall.recall is not None
    assert target <= recall.recall < target + 0.02
    precision = chosen(good, bad, Rule("precision", target)).operating
    assert precision.precision is not None
    assert precision.precision >= target - 1e-9


def test_precision_is_that_of_the_traffic_that_is_expected() -> None:
    good, bad = overlapping()
    as_given = chosen(good, bad, Rule("balanced")).operating
    rare = chosen(good, bad, Rule("balanced"), bad_share=0.02).operating
    assert as_given.recall == rare.recall
    assert as_given.precision is not None
    assert rare.recall is not None
    alarms = (rare.false_alarms * 400 + 1) / 401
    assert rare.precision == pytest.approx(0.02 * rare.recall / (0.02 * rare.recall + 0.98 * alarms))
    assert rare.precision < as_given.precision / 3


def test_f1_finds_more_where_bad_answers_are_common() -> None:
    good, bad = overlapping()
    common = chosen(good, bad, Rule("f1"), bad_share=0.5)
    rare = chosen(good, bad, Rule("f1"), bad_share=0.02)
    assert rare.value < common.value


def test_an_impossible_precision_gives_no_threshold() -> None:
    good, bad = overlapping()
    swamped = choose(good, bad, Rule("precision", 0.999), 0.05, 1e-6, 1.0)
    assert isinstance(swamped, NotChosen)
    assert "precision of 0.999" in swamped.why


def test_a_metric_that_does_not_tell_good_from_bad_is_set_by_false_alarms() -> None:
    rng = np.random.default_rng(4)
    good, bad = answers(rng.uniform(0, 1, 200)), answers(rng.uniform(0, 1, 200))
    assert chosen(good, bad, Rule("balanced")).rule == ALARMS
    few = answers(overlapping()[1].scores[:9])
    assert chosen(overlapping()[0], few, Rule("balanced")).rule == ALARMS
    assert chosen(overlapping()[0], few, Rule("balanced")).operating.recall is not None


def test_rules_are_read_and_nothing_else() -> None:
    assert parse_rule("balanced") == Rule("balanced")
    assert parse_rule(" recall=0.8") == Rule("recall", 0.8)
    assert str(parse_rule("false-alarms=0.05")) == "false-alarms=0.05"
    for wrong in ("", "best", "recall", "recall=0", "recall=1.5", "precision=x", "balanced=1", "f1=0.5", "recall=nan"):
        with pytest.raises(ValueError, match="give balanced, f1"):
            parse_rule(wrong)
