"""The paired comparison of `score-file --against`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.comparison import Comparison, ComparisonError, OldScores, comparable, read_old, student_quantile
from consumer.record import MetricScore, MetricUnscored, Position, ScoreRecord, encode_record
from consumer.score_gates import fallen, read_floors


def record(id: str, value: float | None, content: str = "c", definition: str = "aaaaaaaa") -> ScoreRecord:
    return ScoreRecord(
        id=id,
        content_hash=content,
        event_time=1.0,
        scored_time=2.0,
        source=Position("f", 0, 1),
        segment={"app": "other", "lang": "en"},
        sampled_by="rate",
        probability=1.0,
        scores={} if value is None else {"m": MetricScore(value, 1.0)},
        unscored={"m": MetricUnscored("no_context", 1.0)} if value is None else {},
        definitions={"m": definition},
        run="file",
    )


def old_scores(*records: ScoreRecord) -> OldScores:
    return read_old(enumerate((encode_record(r) for r in records), start=1))


def compared(old: list[ScoreRecord], new: list[ScoreRecord]) -> Comparison:
    comparison = Comparison(old_scores(*old), ("m",))
    for r in new:
        comparison.add(r)
    return comparison


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (5, 2.5706), (10, 2.2281),
                                                   (30, 2.0423), (1000, 1.9623)])  # fmt: skip
def test_student_quantile_agrees_with_printed_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(quantile, abs=0.004)


def test_a_worked_example() -> None:
    # Differences -0.1, -0.2, -0.3: mean -0.2, s = 0.1, half width 4.3027 * 0.1 / sqrt(3).
    old = [record("a", 0.9), record("b", 0.8), record("c", 0.7)]
    new = [record("c", 0.4), record("a", 0.8), record("b", 0.6, content="other")]
    (difference,) = compared(old, new).differences()
    half = 4.3027 * 0.1 / math.sqrt(3)
    assert difference.difference == pytest.approx(-0.2)
    assert difference.low == pytest.approx(-0.2 - half, 1e-4)
    assert difference.high == pytest.approx(-0.2 + half, 1e-4)
    assert [r.id for r in difference.worst] == ["c", "b", "a"]
    assert not difference.fell
    assert compared(old, new).joined().changed == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=50))
def test_difference_agrees_with_numpy(pairs: list[tuple[float, float]]) -> None:
    old = [record(str(i), a) for i, (a, _) in enumerate(pairs)]
    new = [record(str(i), b) for i, (_, b) in enumerate(pairs)]
    (d,) = compared(old, new).differences()
    changes = np.array([b - a for a, b in pairs])
    assert d.difference == pytest.approx(changes.mean(), abs=1e-12)
    assert d.low is not None
    assert d.high is not None
    half = student_quantile(0.975, len(pairs) - 1) * changes.std(ddof=1) / math.sqrt(len(pairs))
    assert (d.high - d.low) / 2 == pytest.approx(half, abs=1e-9)
    assert [r.old - r.new for r in d.worst] == sorted((r.old - r.new for r in d.worst), reverse=True)
    assert all(r.new < r.old for r in d.worst)


def test_interval_covers_the_true_difference_at_its_level() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        before = rng.uniform(0.5, 0.9, 20)
        after = before - 0.05 + rng.normal(0, 0.05, 20)
        (d,) = compared(
            [record(str(i), v) for i, v in enumerate(before.tolist())],
            [record(str(i), v) for i, v in enumerate(after.tolist())],
        ).differences()
        assert d.low is not None
        assert d.high is not None
        covered += d.low <= -0.05 <= d.high
    # 95 % of 400, give or take three standard deviations.
    assert 367 <= covered <= 393


def test_a_fall_is_said_with_its_figures_and_noise_is_not_a_fall() -> None:
    old = [record(str(i), 0.8 + 0.001 * i) for i in range(20)]
    worse = compared(old, [record(str(i), 0.7 + 0.0011 * i) for i in range(20)])
    (line,) = fallen(worse.joined(), worse.differences())
    assert line.startswith("--against: m fell by 0.09")
    assert "20 pairs" in line
    # The same texts in another batch order: a constant shift of the last digits is significant, but no fall.
    noise = compared(old, [record(str(i), 0.8 + 0.001 * i - 1e-5) for i in range(20)])
    assert noise.differences()[0].high is not None
    assert fallen(noise.joined(), noise.differences()) == []


def test_events_that_lost_their_score_are_counted_not_averaged() -> None:
    old = [record("a", 0.2), record("b", 0.9), record("c", None)]
    comparison = compared(old, [record("a", None), record("b", 0.9), record("c", 0.5), record("d", 0.1)])
    (d,) = comparison.differences()
    assert (d.pairs, d.lost, d.gained, d.difference) == (1, 1, 1, 0.0)
    assert (d.low, d.high, d.fell) == (None, None, False)
    assert (comparison.joined().only_new, comparison.joined().only_old) == (1, 0)


def test_repeated_ids_count_once_on_either_side() -> None:
    old = old_scores(record("a", 0.2), record("a", 0.9))
    assert (old.repeated, old.by_id["a"].scores["m"]) == (1, 0.2)
    comparison = compared([record("a", 0.2)], [record("a", 0.1), record("a", 0.9)])
    assert comparison.joined().repeated == 1
    assert comparison.differences()[0].new == 0.1


def test_nothing_in_common_is_a_reason_to_fail() -> None:
    comparison = compared([record("a", 0.2)], [record("b", 0.2)])
    assert "no id is in both" in fallen(comparison.joined(), comparison.differences())[0]
    comparison = compared([record("a", None)], [record("a", 0.2)])
    assert "no event has a score in both" in fallen(comparison.joined(), comparison.differences())[0]


def test_another_definition_is_refused_and_says_what_to_do() -> None:
    old = old_scores(record("a", 0.2), replace(record("b", 0.2), definitions={"m": "bbbbbbbb"}))
    with pytest.raises(ComparisonError, match=r"aaaaaaaa, bbbbbbbb and is aaaaaaaa now.*--metrics"):
        comparable(old, {"m": "aaaaaaaa"})
    with pytest.raises(ComparisonError, match="none of the metrics"):
        comparable(old, {"n": "aaaaaaaa"})
    assert comparable(old_scores(record("a", 0.2)), {"n": "cccccccc", "m": "aaaaaaaa"}) == ("m",)


def test_an_old_file_without_records_is_refused() -> None:
    with pytest.raises(ComparisonError, match="holds no score record"):
        read_old([(1, b"{}"), (2, b"not json"), (3, b" ")])
    mixed = read_old([(1, b"not json"), (2, encode_record(record("a", 0.5)))])
    assert mixed.unreadable == (1,)


@pytest.mark.parametrize("given", ["m", "x=0.5", "m=high", "m=nan", "m=85", "m=", "=0.5"])
def test_a_floor_that_cannot_be_meant_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="m"):
        read_floors([given], {"m": (-1.0, 1.0)})


def test_floors_are_read() -> None:
    assert read_floors(["m=0.5", " n = 0 "], {"m": (-1.0, 1.0), "n": (0.0, 1.0)}) == {"m": 0.5, "n": 0.0}
