"""Labels of the exported series: segments and dimensions are capped, and no value breaks a scrape."""

from __future__ import annotations

import hashlib

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from consumer.record import ScoreRecord, encode_record
from metrics.exposition import (
    label_value,
)
from metrics.label_names import label_name
from tests.score_records import score_record
from tests.unit.exposition_harness import NOW, Board


def test_ten_thousand_tenants_make_no_series() -> None:  # field case 51
    board = Board()
    board.count(score_record(0, NOW, {"faithfulness": 0.5}))

    def series() -> int:
        return sum(not line.startswith("#") for line in generate_latest(board.registry).decode().splitlines())

    before = series()
    for i in range(10_000):
        board.book.count(
            encode_record(
                score_record(
                    i + 1, NOW, {"faithfulness": 0.5}, segment={"app": f"tenant-{i}", "lang": "en"},
                    labels={"model": f"m-{i}", "error": "x" * 500}, trace_id=f"trace-{i}",
                )
            ),
            NOW,
        )  # fmt: skip
    # Only the gauges of the segment `other`/`en` have come to be: 3 of each window's ... and of `all` none.
    grown = series() - before
    assert 0 < grown <= 2 * 12
    assert board.value("label_overflow_total") == 10_000
    text = generate_latest(board.registry).decode()
    assert "tenant-" not in text
    assert "trace-" not in text
    assert "_created" not in text
    assert board.value("rolling_samples", metric="faithfulness", window="5m", app="other", lang="en") == 10_000


def test_flags_and_faults_are_capped() -> None:
    board = Board()
    for i in range(500):
        board.count(score_record(i, NOW, {}, flags=(f"flag_{i}",), fault=f"fault {i}"))
    found = {
        (s.labels["flag"], s.labels["fault"])
        for family in parse(generate_latest(board.registry).decode())
        for s in family.samples
        if s.name == "groundwatch_flagged_total"
    }
    assert len({flag for flag, _ in found}) <= 41
    assert {fault for _, fault in found} == {"other"}


@pytest.mark.parametrize("odd", ["gpt-\ud83d", "\udc80", 'a"b\\c\n', "\x00\x1b[31m", "\u202e" * 300])
def test_no_label_value_breaks_a_scrape(odd: str) -> None:  # field case 56
    board = Board(segments={"allow": {"app": ["helpdesk"], "lang": ["en"]}, "contrast": ["model"]})
    board.count(score_record(1, NOW, {"faithfulness": 0.5}))
    record = score_record(2, NOW, {"faithfulness": 0.5})
    with board.book.opened() as (rolling, counting):
        changed = ScoreRecord(
            **{
                **{name: getattr(record, name) for name in record.__dataclass_fields__},
                "versions": {"embedder": odd},
                "definitions": {"faithfulness": "11111111"},
                "trace_id": odd,
                "id": odd,
                "flags": (odd,),
                "fault": odd,
                "labels": {"model": odd},
            }
        )
        rolling.add(changed, ("helpdesk", "en"), NOW, NOW)
        counting.add(changed, ("helpdesk", "en"), rolling.definitions, NOW)
    for _ in range(2):
        plain = list(parse(generate_latest(board.registry).decode()))
        rich = list(parse_openmetrics(openmetrics(board.registry).decode()))
        assert {"groundwatch_rolling_score", "groundwatch_score"} <= {f.name for f in plain} & {f.name for f in rich}


def test_exemplars_name_the_answer_and_long_ids_are_hashed() -> None:
    board = Board()
    long = "t" * 65
    board.count(
        score_record(1, NOW, {"faithfulness": 0.05}, trace_id="abc-1"),
        score_record(2, NOW, {"faithfulness": 0.15}, trace_id=long),
        score_record(3, NOW, {"faithfulness": 0.95}),
    )
    text = openmetrics(board.registry).decode()
    samples = {
        s.labels["le"]: s.exemplar
        for family in parse_openmetrics(text)
        for s in family.samples
        if s.name == "groundwatch_score_bucket" and s.labels["lang"] == "en" and s.exemplar
    }
    assert samples["0.1"].labels == {"trace_id": "abc-1"}
    assert samples["0.1"].value == 0.05
    assert samples["0.2"].labels == {"trace_id": hashlib.sha256(long.encode()).hexdigest()[:32]}
    assert samples["1.0"].labels == {"event_id": "evt-3"}
    assert long not in text


def test_any_segment_keys() -> None:
    board = Board(segments={"allow": {"tenant": ["a"], "data-centre": ["x", "y"], "tier": []}})
    board.count(
        score_record(1, NOW, {"faithfulness": 0.5}, segment={"tenant": "a", "data-centre": "y", "tier": "gold"})
    )
    assert board.value("rolling_samples", window="5m", tenant="a", data_centre="y", tier="other") == 1
    assert board.value("rolling_samples", window="5m", tenant="all", data_centre="all", tier="all") == 1


def test_segment_keys_become_label_names() -> None:
    names = [label_name(key) for key in ("lang", "data-centre", "3rd", "metric", "__name__", "größe")]
    assert names == ["lang", "data_centre", "segment_3rd", "segment_metric", "segment___name__", "gr__e"]


def test_label_values_are_made_safe() -> None:
    assert label_value("a\ud800b\nc") == "a\ufffdb\ufffdc"
    assert len(label_value("x" * 999)) == 200


# -- what is read back ----------------------------------------------------------------------------------------------
