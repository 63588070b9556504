"""What /metrics shows of windows and counters, read back by the Prometheus client's own parsers."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from consumer.record import encode_record
from metrics.exposition import (
    GuardedCollector,
)
from metrics.outcome import Reason
from tests.score_records import DEFINITIONS, score_record, weighted_mean
from tests.unit.exposition_harness import ALL, EN, NOW, Board


def test_gauges_equal_the_weighted_mean_of_the_distinct_records() -> None:
    board = Board()
    records = [
        score_record(
            i, NOW - i, {"faithfulness": (i % 7) / 7, "topic_similarity": 0.9 - i / 100},
            probability=(1, 0.2, 0.013)[i % 3], segment={"app": "helpdesk", "lang": ("en", "zh")[i % 2]},
        )
        for i in range(100)
    ]  # fmt: skip
    board.count(*records, *records[:40], *records[90:])
    for metric, definition in DEFINITIONS.items():
        labels = {"metric": metric, "definition": definition, "window": "5m"}
        assert board.value("rolling_score", **labels, **ALL) == pytest.approx(weighted_mean(records, metric), abs=1e-9)
        for lang in ("en", "zh"):
            segment = EN | {"lang": lang}
            assert board.value("rolling_score", **labels, **segment) == pytest.approx(
                weighted_mean(records, metric, lang=lang), abs=1e-9
            )
            assert board.value("rolling_samples", **labels, **segment) == 50
        low, high = (board.value(f"rolling_score_{end}", **labels, **ALL) for end in ("low", "high"))
        p10 = board.value("rolling_score_p10", **labels, **ALL)
        assert low is not None
        assert high is not None
        assert p10 is not None
        assert low < weighted_mean(records, metric) < high
        assert p10 < weighted_mean(records, metric)
        effective = board.value("rolling_effective_samples", **labels, **ALL)
        assert effective is not None
        assert 1 < effective < 100
    assert board.outcome("counted") == 100
    assert board.outcome("duplicate") == 50


def test_counters_are_there_at_zero_from_the_first_sight_of_a_definition() -> None:
    board = Board()
    assert board.value("answers_weight_total", **EN) == 0
    assert board.value("statements_total", **EN, verdict="contradicted") == 0
    assert board.value("dimension_changes_total", **EN, dimension="model") == 0
    assert board.outcome("undecodable") == 0
    assert board.value("score_count", metric="faithfulness", **EN) is None
    board.count(score_record(1, NOW, {"faithfulness": 0.5}, segment={"app": "helpdesk", "lang": "zh"}))
    assert board.value("score_count", metric="faithfulness", **EN) == 0
    assert board.value("score_weight_total", metric="faithfulness", **EN) == 0


def test_histogram_and_sums_take_the_distance_of_a_similarity() -> None:
    board = Board()
    board.count(
        score_record(1, NOW, {"topic_similarity": 0.75}, probability=0.5),
        score_record(2, NOW, {"topic_similarity": -0.5}, probability=0.25),
    )
    labels = {"metric": "topic_distance", "definition": DEFINITIONS["topic_similarity"], **EN}
    assert board.value("score_bucket", le="0.25", **labels) == 1
    assert board.value("score_bucket", le="2.0", **labels) == 2
    assert board.value("score_bucket", le="+Inf", **labels) == 2
    assert board.value("score_sum", **labels) == 1.75
    assert board.value("score_weighted_sum_total", **labels) == 0.25 * 2 + 1.5 * 4
    assert board.value("score_weight_total", **labels) == 6
    assert board.value("rolling_score", metric="topic_similarity", window="5m", **EN) == pytest.approx(-0.5 / 6)


def test_statements_flags_refusals_and_dimensions() -> None:
    board = Board()
    board.count(
        score_record(1, NOW, {"faithfulness": 0.8}, probability=0.5, statements={"supported": 4, "contradicted": 1}),
        score_record(
            2, NOW, {"faithfulness": 0.2}, probability=0.25, flags=("faithfulness_low",), fault="generation",
            statements={"not_found": 2}, labels={"model": "m-2", "kb_version": "k"},
        ),
        score_record(3, NOW, {}, probability=1.0, refusal=True, labels={"model": "m-1"}),
    )  # fmt: skip
    assert board.value("statements_total", verdict="supported", **EN) == 4
    assert board.value("statements_total", verdict="not_found", **EN) == 2
    assert board.value("statements_per_answer_count", **EN) == 2
    assert board.value("flagged_total", flag="faithfulness_low", fault="generation", **EN) == 1
    assert board.value("flagged_answers_weight_total", **EN) == 4
    assert board.value("answers_weight_total", **EN) == 7
    assert board.value("refusals_total", **EN) == 1
    assert board.value("rolling_refusal_ratio", window="5m", **EN) == pytest.approx(1 / 7)
    assert board.value("rolling_flagged_ratio", window="1h", **ALL) == pytest.approx(4 / 7)
    # m-1 is where it starts, m-2 is new, m-1 again is not.
    assert board.value("dimension_changes_total", dimension="model", **EN) == 1
    assert board.value("dimension_changes_total", dimension="kb_version", **EN) == 0


def test_every_record_has_one_outcome() -> None:
    board = Board()
    good = score_record(1, NOW, {"faithfulness": 0.5})
    board.count(
        good,
        good,
        score_record(1, NOW, {"faithfulness": 0.1}, content_hash="another"),
        score_record(2, NOW - 3 * 86400, {"faithfulness": 0.1}),
        score_record(3, NOW + 86400, {"faithfulness": 0.1}),
        score_record(4, NOW, {"faithfulness": 0.1}, run="backfill"),
        score_record(5, NOW, {"faithfulness": 0.1}, v=2),
    )
    for raw in (None, b"", b"{", b"null", b"[]", b'{"v": 1}', b"\xff\xfe", b"\x00\x00\x00\x00\x01{}", b'"text"'):
        board.book.count(raw, NOW)
    counts = {
        o: board.outcome(o)
        for o in ("counted", "duplicate", "conflict", "late", "future", "other_run", "other_version", "undecodable")
    }
    assert counts == {
        "counted": 1, "duplicate": 1, "conflict": 1, "late": 1, "future": 1,
        "other_run": 1, "other_version": 1, "undecodable": 9,
    }  # fmt: skip
    # Counted, conflicting and future records are in the gauge; the others are not.
    assert board.value("rolling_samples", metric="faithfulness", window="5m", **ALL) == 3


def test_one_event_from_the_future_harms_nobody() -> None:  # field case 71 (b)
    board = Board()
    board.count(score_record(0, NOW + 86400, {"faithfulness": 0.0}))
    board.count(*(score_record(i, NOW - 1, {"faithfulness": 1.0}) for i in range(1, 11)))
    board.count(score_record(99, NOW - 3 * 86400, {"faithfulness": 0.0}))
    assert board.value("rolling_samples", metric="faithfulness", window="5m", **ALL) == 11
    assert board.outcome("future") == 1
    assert board.outcome("late") == 1
    # It counts at the wall clock of its arrival, and leaves with it.
    board.now += 400
    assert board.value("rolling_samples", metric="faithfulness", window="5m", **ALL) == 0


def test_a_bad_record_does_not_end_the_others() -> None:  # field cases 1 and 2
    board = Board()
    board.book.count(b'{"v": 1, "id": "x", "event_time": "a word"}', NOW)
    board.book.count(b'{"v": 1, "segment": [1, {}], "id": []}', NOW)
    board.count(*(score_record(i, NOW, {"faithfulness": 0.5}) for i in range(10)))
    assert board.outcome("undecodable") == 2
    assert board.value("rolling_samples", metric="faithfulness", window="5m", **ALL) == 10


def test_numbers_that_are_none_ruin_no_sum() -> None:  # field case 52
    board = Board()
    good = encode_record(score_record(1, NOW, {"faithfulness": 0.9}))
    for other in (b"NaN", b"Infinity", b"1e400", b"null", b'"0.9"', b"true", b"1.5", b"-1"):
        board.book.count(good.replace(b'"value":0.9', b'"value":' + other).replace(b"evt-1", b"evt-" + other[:2]), NOW)
    board.count(score_record(1, NOW, {"faithfulness": 0.9}), score_record(2, NOW, {"faithfulness": 0.8}))
    assert board.value("score_sum", metric="faithfulness", **EN) == pytest.approx(1.7)
    assert board.value("score_weighted_sum_total", metric="faithfulness", **EN) == pytest.approx(1.7)
    assert board.value("rolling_score", metric="faithfulness", window="5m", **EN) == pytest.approx(0.85)
    # 1.5 and -1 are numbers, but no shares.
    assert board.value("nonfinite_total") == 2
    assert board.outcome("undecodable") == 6
    text = generate_latest(board.registry).decode()
    assert not [
        line for line in text.splitlines() if not line.startswith("#") and not math.isfinite(float(line.split()[-1]))
    ]


def test_degraded_where_too_many_scores_failed() -> None:
    board = Board()
    board.count(*(score_record(i, NOW, {"faithfulness": 0.5}) for i in range(8)))
    board.count(*(score_record(10 + i, NOW, {}, failed=["faithfulness"]) for i in range(2)))
    assert board.value("rolling_coverage_ratio", metric="faithfulness", window="5m", **EN) == pytest.approx(0.8)
    assert board.value("rolling_degraded", metric="faithfulness", window="5m", **EN) == 1
    assert Reason.JUDGE_TIMEOUT.value == "judge_timeout"


def test_series_of_empty_windows_are_removed() -> None:  # field case 53
    board = Board()
    board.count(score_record(1, NOW, {"faithfulness": 0.5}))
    labels = {"metric": "faithfulness", "window": "5m", **EN}
    assert board.value("rolling_score", **labels) == 0.5
    board.now += 2 * 300
    for name in (
        "rolling_score",
        "rolling_score_low",
        "rolling_score_p10",
        "rolling_coverage_ratio",
        "rolling_degraded",
    ):
        assert board.value(name, **labels) is None
    assert board.value("rolling_samples", **labels) == 0
    assert board.value("rolling_refusal_ratio", window="5m", **EN) is None
    assert board.value("last_answer_timestamp_seconds", **EN) == NOW


def test_a_read_that_fails_shows_the_last_values() -> None:  # field case 57
    values = itertools.chain([1.0], itertools.repeat(None))

    def make() -> Iterator[Metric]:
        value = next(values)
        if value is None:
            raise RuntimeError("dictionary changed size during iteration")
        family = Metric("groundwatch_x", "x", "gauge")
        family.add_sample("groundwatch_x", {}, value)
        yield family

    registry = CollectorRegistry(auto_describe=False)
    registry.register(GuardedCollector(make))
    assert b"groundwatch_x 1.0" in generate_latest(registry)
    for failures in (1, 2):
        text = generate_latest(registry).decode()
        assert "groundwatch_x 1.0" in text
        assert f"groundwatch_exposition_errors_total {failures}.0" in text


def test_scrapes_while_records_arrive() -> None:  # field case 57
    board = Board()
    stop = threading.Event()

    def arrive() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            board.count(score_record(i, NOW, {"faithfulness": 0.5}, definitions={"faithfulness": f"{i % 9:08x}"}))

    thread = threading.Thread(target=arrive)
    thread.start()
    try:
        for _ in range(50):
            assert b"groundwatch_exposition_errors_total 0.0" in generate_latest(board.registry)
    finally:
        stop.set()
        thread.join()


def test_reading_back_gives_the_same_gauges_and_moves_no_counter() -> None:
    live, again = Board(), Board()
    records = [
        score_record(
            i, NOW - i * 30, {"faithfulness": (i % 5) / 5}, probability=(1.0, 0.1)[i % 2], run=("live", "b")[i % 9 == 0]
        )
        for i in range(100)
    ]
    log = [(encode_record(r), r.event_time) for r in (*records, *records[:30])] + [(b"broken", NOW)]
    for raw, appended in log:
        live.book.count(raw, appended)
    again.book.restore_recent()(log[50:])
    again.book.restore_older()(log[:50])
    for window in ("5m", "1h"):
        for name in ("rolling_score", "rolling_samples", "rolling_score_p10", "rolling_effective_samples"):
            labels = {"metric": "faithfulness", "window": window, **ALL}
            assert again.value(name, **labels) == pytest.approx(live.value(name, **labels), abs=1e-12)
    assert again.outcome("counted") == 0
    assert again.value("score_count", metric="faithfulness", **EN) == 0
    assert again.value("answers_weight_total", **EN) == 0
    # Ids are remembered: what comes again after the committed offset is a duplicate.
    again.book.count(*log[1])
    assert again.outcome("duplicate") == 1


def test_reset_forgets_windows_but_no_counter() -> None:
    board = Board()
    board.count(score_record(1, NOW, {"faithfulness": 0.5}))
    board.book.reset()
    assert board.value("rolling_samples", metric="faithfulness", window="5m", **EN) is None
    assert board.outcome("counted") == 1


def test_since_when_each_definition_is_seen_whatever_the_order_of_arrival() -> None:
    board = Board()
    for number, (age, definition) in enumerate(
        [(900, "aaaaaaaa"), (20, "bbbbbbbb"), (1200, "aaaaaaaa"), (5, "bbbbbbbb")]
    ):
        board.count(score_record(number, NOW - age, {"faithfulness": 0.9}, definitions={"faithfulness": definition}))
    since = {d: board.value("definition_since_timestamp_seconds", definition=d) for d in ("aaaaaaaa", "bbbbbbbb")}
    assert since == {"aaaaaaaa": NOW - 1200, "bbbbbbbb": NOW - 20}
