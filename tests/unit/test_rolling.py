"""Rolling windows and the ids seen lately, against plain lists of everything."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import metrics.dedup
from consumer.record import MetricScore, ScoreRecord
from metrics.dedup import Dedup, Seen
from metrics.ranges import SHARE, SIMILARITY, range_of
from metrics.ring import SLICES, Ring, Window
from metrics.rolling import MAX_DEFINITIONS, MAX_METRICS, Reading, Rolling
from tests.score_records import score_record, weighted_mean

EN, ZH = ("helpdesk", "en"), ("helpdesk", "zh")
WINDOWS = {"5m": 300.0, "1h": 3600.0}
NOW = 1_790_000_000.0


def reading(rolling: Rolling, segment: tuple[str, str], window: str = "5m", metric: str = "faithfulness") -> Reading:
    found = [r for r in rolling.read(NOW)[0] if (r.segment, r.window, r.metric) == (segment, window, metric)]
    assert len(found) == 1
    return found[0]


def filled(records: list[ScoreRecord], now: float = NOW) -> Rolling:
    rolling = Rolling(WINDOWS, [EN, ZH])
    for record in records:
        rolling.add(record, (record.segment["app"], record.segment["lang"]), record.event_time, now)
    return rolling


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0.001, 1), st.floats(0, 3599), st.sampled_from(["en", "zh"])),
        min_size=1,
        max_size=80,
    )
)
def test_means_are_those_of_the_answers_in_the_window(answers: list[tuple[float, float, float, str]]) -> None:
    records = [
        score_record(i, NOW - age, {"faithfulness": value}, probability=p, segment={"app": "helpdesk", "lang": lang})
        for i, (value, p, age, lang) in enumerate(answers)
    ]
    rolling = filled(records)
    for name, seconds in WINDOWS.items():
        first = Window(name, seconds).first_slice(NOW)
        inside = [r for r in records if Window(name, seconds).slice_of(r.event_time) >= first]
        for segment, chosen in (
            (EN, [r for r in inside if r.segment["lang"] == "en"]),
            (ZH, [r for r in inside if r.segment["lang"] == "zh"]),
            (("all", "all"), inside),
        ):
            found = reading(rolling, segment, name)
            assert found.samples == len(chosen)
            if chosen:
                assert found.mean == pytest.approx(weighted_mean(chosen, "faithfulness"), abs=1e-12)
                assert found.low is not None
                assert found.high is not None
                assert 0 <= found.low <= found.mean <= found.high <= 1


def test_many_samples_lose_no_digit() -> None:
    rng = random.Random(7)
    records = [
        score_record(
            i, NOW - rng.random() * 290, {"faithfulness": rng.random()}, probability=rng.choice([1, 0.05, 1e-4])
        )
        for i in range(6_000)
    ]
    found = reading(filled(records), EN)
    assert found.samples == 6_000
    assert found.mean == pytest.approx(weighted_mean(records, "faithfulness"), abs=1e-12)


def test_nothing_inside_a_window_is_missing_and_nothing_far_outside_is_in() -> None:
    ages = [299.9, 300.0 + 2 * 300 / SLICES, 3599.9]
    rolling = filled([score_record(i, NOW - age, {"faithfulness": 0.5}) for i, age in enumerate(ages)])
    assert reading(rolling, EN, "5m").samples == 1
    assert reading(rolling, EN, "1h").samples == 3


def test_the_window_slides_and_a_known_segment_stays_at_zero_samples() -> None:  # field case 53
    rolling = filled([score_record(1, NOW, {"faithfulness": 0.5})])
    for later, samples in ((0.0, 1), (299.0, 1), (306.0, 0), (10_000.0, 0)):
        found = [r for r in rolling.read(NOW + later)[0] if r.window == "5m" and r.segment == EN]
        assert [r.samples for r in found] == [samples]
        assert (found[0].mean is None) == (samples == 0)
    # The newest definition is known for good, also in a segment that never had an answer.
    assert {r.segment: r.samples for r in rolling.read(NOW + 1e6)[0] if r.window == "1h"} == {
        EN: 0,
        ZH: 0,
        ("all", "all"): 0,
    }


def test_late_answers_join_the_windows_that_still_hold_their_time() -> None:  # field case 71 (b)
    rolling = filled([score_record(1, NOW, {"faithfulness": 1.0})])
    late = score_record(2, NOW - 2000, {"faithfulness": 0.0})
    rolling.add(late, EN, late.event_time, NOW)
    ancient = score_record(3, NOW - 3 * 86400, {"faithfulness": 0.0})
    rolling.add(ancient, EN, ancient.event_time, NOW)
    assert reading(rolling, EN, "5m").mean == 1.0
    assert reading(rolling, EN, "1h").mean == 0.5
    assert reading(rolling, EN, "1h").samples == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.0000001, -0.0000001])
def test_what_is_no_score_never_reaches_a_window(value: float) -> None:  # field case 52
    rolling = filled([score_record(1, NOW, {"faithfulness": 0.9}), score_record(2, NOW, {"faithfulness": 0.8})])
    added = rolling.add(score_record(3, NOW, {"faithfulness": value}), EN, NOW, NOW)
    assert added.nonfinite == 1
    found = reading(rolling, EN)
    assert found.samples == 2
    assert found.mean == pytest.approx(0.85)
    assert found.coverage == pytest.approx(2 / 3)


def test_average_of_averages_is_not_taken() -> None:  # field case 62
    few = [score_record(i, NOW, {"faithfulness": 0.20}) for i in range(2)]
    many = [
        score_record(10 + i, NOW, {"faithfulness": 0.95}, segment={"app": "helpdesk", "lang": "zh"}) for i in range(998)
    ]
    rolling = filled(few + many)
    assert reading(rolling, ("all", "all")).mean == pytest.approx(0.9485, abs=1e-12)


def test_weights_are_those_of_the_metric_not_of_the_answer() -> None:
    costly = score_record(1, NOW, {"topic_similarity": 0.5}, probability=1.0)
    rare = replace(costly, id="evt-2", scores={"topic_similarity": MetricScore(0.8, 0.1)})
    assert reading(filled([costly, rare]), EN, metric="topic_similarity").mean == pytest.approx((0.5 + 8) / 11)


def test_coverage_counts_failures_by_weight_and_leaves_the_rest_out() -> None:
    records = [
        score_record(1, NOW, {"faithfulness": 1.0}, probability=0.5),
        score_record(2, NOW, {}, failed=["faithfulness"], probability=0.25),
    ]
    assert reading(filled(records), EN).coverage == pytest.approx(2 / 6)
    alone = reading(filled(records[1:]), EN)
    assert (alone.samples, alone.mean, alone.coverage) == (0, None, 0.0)


def test_definitions_stand_side_by_side_and_old_ones_leave() -> None:
    old = score_record(1, NOW - 10, {"faithfulness": 0.2}, definitions={"faithfulness": "00000001"})
    new = score_record(2, NOW, {"faithfulness": 0.9}, definitions={"faithfulness": "00000002"})
    rolling = filled([old, new])
    means = {r.definition: r.mean for r in rolling.read(NOW)[0] if r.window == "5m" and r.segment == EN}
    assert means == {"00000001": 0.2, "00000002": 0.9}
    assert {r.definition for r in rolling.read(NOW + 2 * 3600 + 1)[0]} == {"00000002"}


def test_names_are_capped_and_the_latest_definitions_win() -> None:  # field case 51
    rolling = Rolling(WINDOWS, [EN, ZH])
    for i in range(100):
        rolling.add(
            score_record(i, NOW - 100 + i, {"faithfulness": 0.5}, definitions={"faithfulness": f"{i:08x}"}), EN,
            NOW - 100 + i, NOW,
        )  # fmt: skip
    kept = set(rolling.definitions["faithfulness"])
    assert kept == {f"{i:08x}" for i in range(100 - MAX_DEFINITIONS, 100)}
    overflow = 0
    for i in range(100):
        odd = score_record(i, NOW, {f"metric_{i}": 0.5}, definitions={f"metric_{i}": "00000000"})
        overflow += rolling.add(odd, EN, NOW, NOW).overflow
    assert len(rolling.definitions) == MAX_METRICS
    assert overflow == 100 - MAX_METRICS + 1


@pytest.mark.parametrize("name", ["Faith", 'a"b', "a\nb", "\ud83d", "", "x" * 61])
def test_a_name_that_no_series_may_have_is_left_out(name: str) -> None:
    rolling = Rolling(WINDOWS, [EN])
    assert rolling.add(score_record(1, NOW, {name: 0.5}, definitions={name: "00000000"}), EN, NOW, NOW).overflow == 1
    assert rolling.add(score_record(1, NOW, {"ok": 0.5}, definitions={"ok": name}), EN, NOW, NOW).overflow == 1
    assert rolling.read(NOW)[0] == []


def test_shares_of_refusals_and_flags_are_weighted() -> None:
    records = [
        score_record(1, NOW, {"faithfulness": 0.5}, probability=0.1, refusal=True),
        score_record(2, NOW, {"faithfulness": 0.5}, probability=0.5, flags=("faithfulness_low",)),
        score_record(3, NOW, {"faithfulness": 0.5}, probability=1.0),
    ]
    shares = {(s.segment, s.window): s for s in filled(records).read(NOW)[1]}
    assert shares[EN, "5m"].refusal == pytest.approx(10 / 13)
    assert shares[EN, "5m"].flagged == pytest.approx(2 / 13)
    assert shares[ZH, "5m"].refusal is None
    assert shares[("all", "all"), "5m"].flagged == pytest.approx(2 / 13)


@given(st.floats(-1, 1))
def test_every_cosine_has_the_bin_between_whose_edges_it_lies(value: float) -> None:
    place = SIMILARITY.bin_of(value)
    assert 0 <= place < SIMILARITY.bins
    assert SIMILARITY.edges[place] - 1e-12 <= value <= SIMILARITY.edges[place + 1] + 1e-12


@given(st.floats(0, 1))
def test_every_share_has_the_bin_between_whose_edges_it_lies(value: float) -> None:
    place = SHARE.bin_of(value)
    assert SHARE.edges[place] - 1e-12 <= value <= SHARE.edges[place + 1] + 1e-12


def test_ranges_follow_the_name() -> None:
    assert range_of("question_context_similarity") is SIMILARITY
    assert range_of("faithfulness") is SHARE


def test_a_ring_keeps_a_slice_in_its_group_when_its_row_is_taken() -> None:
    ring = Ring(2)
    ring.cells[ring.row(5)] += 1.0
    ring.cells[ring.row(5 + 64)] += 2.0
    ring.cells[ring.row(6)] += 4.0
    ring.cells[ring.row(5)] += 8.0
    sums = ring.sums(6, 1000)
    assert sums is not None
    assert sums.tolist() == [6.0, 0.0]
    assert ring.sums(0, 5) is None
    before = ring.sums_before(60)
    assert before is not None
    assert before.tolist() == [13.0, 0.0]
    ring.row(5 + 640)
    ring.row(5 + 704)
    assert ring.row(5) == -1


@given(st.lists(st.floats(0, 7300), min_size=1, max_size=300))
def test_the_span_before_a_window_is_known_to_a_sixth_of_its_length(ages: list[float]) -> None:
    window = Window("1h", 3600.0)
    ring = Ring(1)
    first = window.first_slice(NOW)
    numbers = [window.slice_of(NOW - age) for age in ages]
    for number in numbers:
        if number >= first - SLICES:
            row = ring.row(number)
            assert row >= 0
            ring.cells[row] += 1.0
    found = ring.sums_before(first)
    assert (0.0 if found is None else found[0]) == sum(first - SLICES <= number < first for number in numbers)


def test_spans_hold_a_window_and_the_one_before_it_under_the_newest_definition() -> None:
    old = {"definitions": {"faithfulness": "00000001"}}
    rolling = filled(
        [
            score_record(1, NOW - 400, {"faithfulness": 0.2}, probability=0.5),
            score_record(2, NOW - 100, {"faithfulness": 0.9}),
            score_record(3, NOW - 50, {"faithfulness": 0.9}, segment={"app": "helpdesk", "lang": "zh"}),
            score_record(4, NOW - 3500, {"faithfulness": 0.1}, **old),
        ]
    )
    spans = {span.segment: span for span in rolling.spans(NOW, ("5m",))}
    assert spans.keys() == {EN, ZH, ("all", "all")}
    assert {span.definition for span in spans.values()} == {"0badcafe"}
    recent, previous = spans["all", "all"].recent, spans["all", "all"].previous
    assert recent is not None
    assert previous is not None
    assert (recent.samples, recent.effective) == (2, 2.0)
    assert previous.masses[SHARE.bin_of(0.2)] == 2.0
    assert spans[ZH].previous is None


# -- ids seen lately ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=200))
def test_within_the_horizon_dedup_is_a_set(seen: list[tuple[int, int]]) -> None:
    dedup = Dedup(3600.0)
    known: dict[str, set[str]] = {}
    for step, (number, content) in enumerate(seen):
        contents = known.setdefault(f"id-{number}", set())
        expected = Seen.NEW if not contents else Seen.DUPLICATE if f"hash-{content}" in contents else Seen.CONFLICT
        assert dedup.knows(f"id-{number}", f"hash-{content}", NOW + step) == (expected is Seen.DUPLICATE)
        assert dedup.see(f"id-{number}", f"hash-{content}", NOW + step) is expected
        contents.add(f"hash-{content}")


def test_ids_are_kept_for_the_horizon_and_not_much_longer() -> None:
    dedup = Dedup(3600.0)
    assert dedup.see("a", "x", NOW) is Seen.NEW
    assert dedup.see("b", "x", NOW + 1800) is Seen.NEW
    assert dedup.see("a", "x", NOW + 3599) is Seen.DUPLICATE
    assert dedup.see("b", "x", NOW + 5399) is Seen.DUPLICATE
    assert dedup.see("a", "x", NOW + 3605) is Seen.NEW
    assert dedup.see("b", "x", NOW + 20_000) is Seen.NEW


def test_thirty_thousand_ids_are_all_known_and_no_other() -> None:
    dedup = Dedup(3600.0)
    for i in range(30_000):
        assert dedup.see(f"evt-{i}", "x", NOW) is Seen.NEW
    assert all(dedup.knows(f"evt-{i}", "x", NOW) for i in range(30_000))
    assert not any(dedup.knows(f"other-{i}", "x", NOW) for i in range(30_000))


def test_memory_is_bounded_and_the_latest_ids_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = 1 << 13
    monkeypatch.setattr(metrics.dedup, "MAX_SLOTS", slots)
    seen = Dedup(1e9)
    for i in range(4 * slots):
        seen.see(f"evt-{i}", "x", NOW)
    assert all(seen.knows(f"evt-{i}", "x", NOW) for i in range(4 * slots - slots // 2, 4 * slots))
    assert sum(seen.knows(f"evt-{i}", "x", NOW) for i in range(4 * slots)) <= 2 * (slots * 5 // 8 + 1)
