"""Change detection: alarms as rare as configured, falls found soon, and what a change event says."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from consumer.change_memory import decode_changes, encode_changes
from consumer.record import ScoreRecord
from metrics.allowance import LEVELS, by_level, lundberg
from metrics.changes import Changes
from metrics.detector import LEAST_ANSWERS, Detector, Scores, Shift
from metrics.reference import Reference
from metrics.run_length import threshold
from tests.score_records import DEFINITIONS, score_record
from tests.traffic_of_scores import DAY, Traffic, stream

EN, ZH, ALL = ("helpdesk", "en"), ("helpdesk", "zh"), ("all", "all")
MONTH = 30 * DAY
KNOWN = {metric: (definition,) for metric, definition in DEFINITIONS.items()}


def shifts(traffic: Traffic, days: float, seed: int, every: float = 600.0) -> list[Shift]:
    detector = Detector(0.0, 1.0)
    found: list[Shift] = []
    for scores in stream(traffic, days, every, np.random.default_rng([21, seed])):
        found += detector.take(scores, MONTH)
    return found


def test_the_average_run_length_is_that_of_the_normal_distribution() -> None:
    # Siegmund's approximation: ARL = (exp(2k(h + 1.166)) - 2k(h + 1.166) - 1) / 2k², here for k = 0.5, h = 4.
    increments = np.random.default_rng(22).standard_normal(200_000) - 0.5
    arl = (math.exp(5.166) - 5.166 - 1) / 0.5
    assert threshold(increments, arl, 0.0) == pytest.approx(4.0, abs=0.15)
    assert threshold(increments, 10 * arl, 0.0) > threshold(increments, arl, 0.0)
    assert threshold(increments, arl, 0.2) > threshold(increments, arl, 0.0)


def test_the_run_length_of_lumpy_increments_is_kept() -> None:
    """Yes/no scores near 0.95, simulated against the level: the mean of 150 run lengths, of a standard error of 8 %."""
    rng = np.random.default_rng(23)
    increments = np.where(rng.random(50_000) < 0.05, 0.95, -0.05) - 0.08
    level = threshold(increments, 2000.0, 0.0)
    lengths = []
    for _ in range(150):
        state, length = 0.0, 0
        while state < level:
            state = max(0.0, state + (0.95 if rng.random() < 0.05 else -0.05) - 0.08)
            length += 1
        lengths.append(length)
    assert np.mean(lengths) == pytest.approx(2000.0, rel=0.25)


def test_the_exponent_of_normal_increments_is_known() -> None:
    increments = np.random.default_rng(31).standard_normal(400_000) * 0.5 - 0.1
    assert lundberg(increments) == pytest.approx(2 * 0.1 / 0.25, rel=0.02)
    assert lundberg(np.full(10, -1.0)) == math.inf


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["fall", "rise"])
def test_chance_lifts_a_sum_as_rarely_at_a_worse_hour_as_at_a_better_one(sign: float) -> None:
    """With the allowance of each hour, simulated shares of four statements have nearly one exponent at all hours."""
    rng = np.random.default_rng(32)
    levels = np.repeat([0.88, 0.92, 0.96], 100_000)
    pulls = rng.binomial(4, levels) / 4 - levels
    usual = 0.05
    allowance = by_level(usual, sign, pulls, np.ones(len(pulls)), levels, most=1.0, centre=0.0)
    assert allowance.at(levels).mean() == pytest.approx(usual, rel=0.01)
    own = [lundberg((sign * pulls - allowance.at(levels))[levels == mean]) for mean in (0.88, 0.92, 0.96)]
    even = [lundberg((sign * pulls - usual)[levels == mean]) for mean in (0.88, 0.92, 0.96)]
    assert max(own) / min(own) < 1.15
    assert max(even) / min(even) > 1.5
    assert np.all(np.diff(allowance.at(LEVELS[LEVELS >= 0.8])) <= 0.0)


@pytest.mark.parametrize(
    ("calm", "per_hour", "weight"),
    [
        (1.0, 60.0, 20.0),
        (1.0, 60.0, 1.0),
        (0.99, 60.0, 20.0),
        (0.92, 60.0, 100.0),
        (0.92, 2.0, 20.0),
        (0.92, 2.0, 100.0),
    ],
)
def test_one_answer_is_never_a_change_whatever_its_weight(calm: float, per_hour: float, weight: float) -> None:
    """The worst answer there can be, with the greatest weight, after a long calm or at low traffic; then four more: not
    before the fifth is it told."""
    detector = Detector(0.0, 1.0)
    traffic = Traffic(mean=calm, volume=0.0, per_hour=per_hour)
    (history,) = stream(traffic, 14.0, 14 * DAY, np.random.default_rng(33))
    detector.learn(history)
    detector.take(one_answer(14 * DAY, calm, 1.0), MONTH)
    for number in range(1, LEAST_ANSWERS):
        assert detector.take(one_answer(14 * DAY + 60.0 * number, 0.0, weight), MONTH) == []
    # It is not deaf either.
    told: list[Shift] = []
    for number in range(LEAST_ANSWERS, 30):
        told += detector.take(one_answer(14 * DAY + 60.0 * number, 0.0, weight), MONTH)
    assert told
    assert told[0].samples >= LEAST_ANSWERS
    assert len(told[0].cases) == 5


@pytest.mark.parametrize("portion", [300.0, 7200.0])
def test_no_change_is_told_on_fewer_answers_than_the_least(portion: float) -> None:
    """Told far too easily (a false alarm every two hours), under unequal weights."""
    detector = Detector(0.0, 1.0)
    found: list[Shift] = []
    traffic = Traffic(rhythm=0.04, probabilities=(1.0, 0.2, 0.02))
    for scores in stream(traffic, 6.0, portion, np.random.default_rng(34)):
        found += detector.take(scores, 7200.0)
    assert len(found) >= 10
    assert all(shift.samples >= LEAST_ANSWERS and len(shift.cases) == 5 for shift in found)


def one_answer(at: float, value: float, weight: float) -> Scores:
    scores = Scores()
    scores.times.append(at)
    scores.values.append(value)
    scores.weights.append(weight)
    scores.answers.append((f"evt-{at:.0f}", None))
    return scores


def test_the_reference_follows_the_day_and_finds_no_rhythm_where_there_is_none() -> None:
    rng = np.random.default_rng(24)
    times = np.sort(rng.uniform(0, 5 * DAY, 7200))
    for amplitude in (0.0, 0.05):
        reference = Reference()
        noise = 0.1 * rng.standard_normal(len(times))
        values = 0.9 + amplitude * np.sin(2 * np.pi * times / DAY) + noise
        for part in np.array_split(np.arange(len(times)), 20):
            reference.add(times[part], values[part], np.full(len(part), 5.0))
        curve = reference.curve().at(np.array([0.25, 0.75]) * DAY)
        assert curve == pytest.approx([0.9 + amplitude, 0.9 - amplitude], abs=0.01)
        assert reference.rate == pytest.approx(60 / 3600, rel=0.05)


def test_a_fall_is_found_within_two_hours_and_said_to_be_what_it_is() -> None:
    traffic = Traffic(volume=0.0, change_at=3 * DAY, change=-0.1)
    soon = 0
    for seed in range(12):
        found = [shift for shift in shifts(traffic, 3.2, seed, 900.0) if shift.found >= 3 * DAY]
        if found and found[0].found <= 3 * DAY + 7200:
            soon += 1
            assert found[0].size < -0.05
            assert abs(found[0].start - 3 * DAY) < 5400
            assert len(found[0].cases) == 5
            assert [case.part for case in found[0].cases] == sorted((c.part for c in found[0].cases), reverse=True)
            assert all(case.value < 0.8 and case.at >= found[0].start for case in found[0].cases)
    assert soon >= 10


def test_a_rise_is_found_too_and_the_new_level_is_the_new_reference() -> None:
    found = shifts(Traffic(mean=0.7, volume=0.0, change_at=3 * DAY, change=0.15), 5.0, 1, 3600.0)
    assert len(found) == 1
    assert found[0].size == pytest.approx(0.15, abs=0.07)
    assert 3 * DAY <= found[0].found < 3 * DAY + 7200


@pytest.mark.parametrize(
    "traffic",
    [
        Traffic(),
        Traffic(rhythm=0.03),
        Traffic(probabilities=(1.0, 0.2, 0.05)),
        Traffic(mean=1.0),
        Traffic(per_hour=5.0),
    ],
    ids=["plain", "rhythm", "weights", "equal", "rare"],
)
def test_false_alarms_are_rare(traffic: Traffic) -> None:
    """Three weeks of one detector, one false alarm a month expected: more than 4 happen once in a thousand times."""
    assert len(shifts(traffic, 21.0, 2, 7200.0)) <= 4


def test_scores_that_an_earlier_process_counted_are_the_reference_of_the_first_live_ones() -> None:
    detector = Detector(0.0, 1.0)
    history = list(stream(Traffic(volume=0.0), 1.0, DAY, np.random.default_rng(25)))
    detector.learn(history[0])
    assert not detector.armed
    later = Traffic(volume=0.0, mean=0.7)
    found = []
    for scores in stream(later, 0.2, 600.0, np.random.default_rng(26)):
        found += detector.take(scores, MONTH)
    assert detector.armed
    assert found
    assert found[0].found < 7200


def filled(segments: list[tuple[str, str]], **fall: float) -> Changes:
    changes = Changes(segments, MONTH)
    rng = random.Random(27)
    for i in range(4000):
        at = 1e9 + i * 30.0
        for lang in ("en", "zh"):
            mean = 0.7 if lang in fall and i > 3000 else 0.92
            score = sum(rng.random() < mean for _ in range(4)) / 4
            record = score_record(i, at, {"faithfulness": score}, segment={"app": "helpdesk", "lang": lang})
            changes.add(record, ("helpdesk", lang), KNOWN, at)
        if i % 25 == 24:
            changes.flush()
    changes.flush()
    return changes


def test_a_change_is_reported_for_its_segment_and_for_all_and_counted_once() -> None:
    changes = filled([EN, ZH], zh=1.0)
    assert {(change.segment, change.metric) for change in changes.recent()} == {
        (ZH, "faithfulness"),
        (ALL, "faithfulness"),
    }
    assert changes.totals["faithfulness", ZH] == 1
    assert changes.totals["faithfulness", EN] == 0
    assert changes.latest.keys() == {("faithfulness", ZH), ("faithfulness", ALL)}
    [change] = [change for change in changes.recent() if change.segment == ZH]
    assert change.definition == DEFINITIONS["faithfulness"]
    # What is found soon is found because it looks worse than it is.
    assert -0.6 < change.shift.size < -0.1
    assert abs(change.shift.start - (1e9 + 3000 * 30)) < 3000


def test_learning_reports_nothing_and_forgetting_keeps_the_totals() -> None:
    changes = Changes([EN], MONTH)
    for i in range(2000):
        record = score_record(i, i * 30.0, {"faithfulness": 0.9 if i < 1000 else 0.2})
        changes.learn(record, EN, KNOWN, i * 30.0)
    changes.learned()
    assert changes.recent() == ()
    assert changes.totals == {("faithfulness", EN): 0}
    changes.forget()
    assert changes.totals == {("faithfulness", EN): 0}


@pytest.mark.parametrize("seed", range(4))
def test_segments_of_different_levels_show_no_change_where_much_comes_at_once(seed: int) -> None:
    """A monitor that was away for hours takes what waits at once; segment after segment, «all» saw a fall in it."""
    changes, rng = Changes([EN, ZH], MONTH), random.Random(seed)
    for i in range(3000):
        english = rng.random() < 0.5
        score = rng.gauss(0.95 if english else 0.85, 0.01)
        segment = {"app": "helpdesk", "lang": "en" if english else "zh"}
        record = score_record(i, 1e9 + i * 60.0, {"faithfulness": score}, segment=segment)
        changes.add(record, EN if english else ZH, KNOWN, record.event_time)
    changes.flush()
    assert changes.recent() == ()


def test_what_the_windows_do_not_admit_has_no_detector() -> None:
    changes = Changes([EN], MONTH)
    odd: list[ScoreRecord] = [
        score_record(1, 0.0, {"faithfulness": 1.5}),
        score_record(2, 0.0, {"faithfulness": math.nan}),
        score_record(3, 0.0, {"other": 0.5}),
    ]
    for record in odd:
        changes.add(record, EN, KNOWN, 0.0)
    changes.flush()
    changes.keep({})
    assert set(changes.totals) <= {("faithfulness", EN)}


def test_scores_come_in_any_portions() -> None:
    whole, parts = Detector(0.0, 1.0), Detector(0.0, 1.0)
    history = next(stream(Traffic(volume=0.0), 2.0, 2 * DAY, np.random.default_rng(28)))
    for detector in (whole, parts):
        detector.learn(history)
        detector.take(_some(0.92, 1, 29), MONTH)
    fall = _some(0.6, 200, 30)
    table = fall.table()
    first = whole.take(fall, MONTH)
    second: list[Shift] = []
    for i in range(table.shape[1]):
        one = Scores()
        one.times.append(table[0, i])
        one.values.append(table[1, i])
        one.weights.append(table[2, i])
        one.answers.append(fall.answers[i])
        second += parts.take(one, MONTH)
    assert first
    assert second
    assert abs(first[0].found - second[0].found) < 1800
    assert first[0].start == second[0].start


def _some(mean: float, n: int, seed: int) -> Scores:
    rng = np.random.default_rng(seed)
    scores = Scores()
    scores.times.extend(2 * DAY + 60.0 * np.arange(n))
    scores.values.extend(rng.binomial(4, mean, n) / 4)
    scores.weights.extend(np.ones(n))
    scores.answers = [(f"evt-{i}", None) for i in range(n)]
    return scores


def test_what_an_earlier_process_found_is_shown_and_not_counted_again() -> None:
    """Kept as JSON meanwhile, and told more than once."""
    before = filled([EN, ZH], zh=1.0)
    kept = encode_changes(before.recent())
    changes = filled([EN, ZH], zh=1.0)
    own = changes.recent()
    changes.recall(decode_changes(kept))
    assert changes.recent() == own
    fresh = Changes([EN, ZH], MONTH)
    for _ in range(2):
        fresh.recall(decode_changes(kept))
    assert fresh.recent() == own
    assert fresh.latest == changes.latest
    assert set(fresh.totals.values()) == {0}
    other = Changes([EN], MONTH)
    other.recall(decode_changes(kept))
    assert other.recent() == ()
    for unreadable in (
        None,
        b"",
        b"{}",
        b'[{"segment": 1}]',
        b'[{"segment": [], "metric": "x", "definition": ""}]',
        b"\xff",
    ):
        assert decode_changes(unreadable) == []
