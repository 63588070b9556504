"""What moved, as its user asks it and as the monitor says it by itself: over a real Kafka."""

from __future__ import annotations

import random
import time
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from consumer.cli import group
from consumer.record import ScoreRecord
from tests.integration.monitor_harness import ScoreLog, is_active, read_total
from tests.processes import wait_until
from tests.score_records import DEFINITIONS, score_record

HOUR = 3600.0


def answers(rng: random.Random, first: int, times: list[float], kb: str, mean: float) -> list[ScoreRecord]:
    """Faithfulness of answers of 4 statements, Chinese and English, of two apps and models."""
    return [
        score_record(
            first + i,
            at,
            {"faithfulness": sum(rng.random() < mean for _ in range(4)) / 4, "topic_similarity": 0.8},
            segment={"app": rng.choice(["helpdesk", "shop"]), "lang": rng.choice(["en", "zh"])},
            labels={"model": rng.choice(["m-1", "m-2"]), "kb_version": kb},
        )
        for i, at in enumerate(times)
    ]


def evenly(begin: float, end: float, n: int) -> list[float]:
    return [begin + (end - begin) * i / n for i in range(n)]


def asked(log: ScoreLog, *arguments: str) -> Result:
    return CliRunner().invoke(group, ["contrast", *arguments], env=log.environment("127.0.0.1:0"))


def test_a_knowledge_base_that_broke_the_answers_is_named(kafka: str) -> None:
    """Field case: after an update of the documents the model goes on answering from the old ones."""
    log = ScoreLog(kafka).create()
    now, rng = time.time(), random.Random(51)
    before = answers(rng, 0, evenly(now - 4 * HOUR + 60, now - 2 * HOUR, 300), "2026-10", 0.92)
    after = answers(rng, 1000, evenly(now - 2 * HOUR + 60, now - 60, 200), "2026-11", 0.72)
    older = answers(rng, 2000, evenly(now - 9 * HOUR, now - 5 * HOUR, 50), "2026-09", 0.1)
    for record in (*older, *before, *after):
        log.produce(record, at=record.event_time)
    backfill = score_record(5000, now - HOUR, {"faithfulness": 0.0}, run="backfill")
    other = score_record(
        5001, now - HOUR, {"faithfulness": 0.0}, definitions=DEFINITIONS | {"faithfulness": "0ther111"}
    )
    log.produce(*after[:20], backfill, other, b"\xff no json", None, at=now - 30)

    shown = asked(log, "--before", "4h", "--after", "2h")
    assert shown.exit_code == 0, shown.output
    assert "explained by: kb_version 2026-11 in place of 2026-10: -0." in shown.output
    assert "left out: 20 repeated records" in shown.output
    assert "like the rest" in shown.output

    told = asked(log, "--before", "4h", "--after", "2h", "--json")
    found = orjson.loads(told.output)
    assert found["contrast"]["before"]["n"] == 300
    assert found["contrast"]["after"]["n"] == 200
    [named] = [part for part in found["contrast"]["parts"] if part["verdict"] == "explains"]
    assert (named["dimension"], named["values"], named["gone"]) == ("kb_version", ["2026-11"], ["2026-10"])
    assert named["low"] < named["size"] < named["high"] < 0
    assert found["others"] == ["0ther111"]

    begin, middle = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - h * HOUR)) for h in (4, 3))
    calm = asked(log, "--before", f"{begin}/{middle}", "--after", f"{middle}/2h")
    assert calm.exit_code == 0, calm.output
    assert "no label explains anything" in calm.output
    one = asked(log, "--before", "4h", "--after", "2h", "--for", "1h", "--segment", "app=shop,lang=zh")
    assert one.exit_code == 0, one.output
    assert "app=shop, lang=zh" in one.output


def test_what_cannot_be_answered_is_said_in_one_line(kafka: str) -> None:
    log = ScoreLog(kafka).create()
    now = time.time()
    old = DEFINITIONS | {"faithfulness": "01d01d01"}
    for i in range(20):
        log.produce(
            score_record(i, now - 3 * HOUR, {"faithfulness": 0.9}, definitions=old),
            score_record(100 + i, now - HOUR, {"faithfulness": 0.9}),
        )
    for arguments, code, words in (
        (("--before", "4h", "--after", "2h"), 1, "no definition of faithfulness has scores in both spans"),
        (("--before", "4h", "--after", "2h", "--metric", "context_recall"), 1, "scored metrics: faithfulness"),
        (("--before", "4h", "--after", "2h", "--segment", "app=shop"), 1, "0 scores before and 0 after"),
        (("--before", "4h", "--after", "2h", "--segment", "lang=xx"), 1, "lang=xx is not in segments.allow"),
        (("--before", "2h", "--after", "4h"), 2, "ends before it begins"),
        (("--before", "4h", "--after", "2h", "--for", "3h"), 2, "must end before"),
        (("--before", "4h/3h", "--after", "2h", "--for", "1h"), 2, "leave --for out"),
        (("--before", "yesterday", "--after", "2h"), 2, "is no time"),
        (("--before", "4h", "--after", "2h", "--for", "long"), 2, "is no length of time"),
        (("--before", "4h", "--after", "2h", "--segment", "model=m-1"), 2, "no dimension 'model'"),
    ):
        result = asked(log, *arguments)
        assert (result.exit_code, words in result.output) == (code, True), (arguments, result.output)
        assert "Traceback" not in result.output
    missing = asked(ScoreLog(kafka), "--before", "4h", "--after", "2h")
    assert missing.exit_code == 1
    assert "groundwatch topics create" in missing.output


@pytest.mark.full
def test_a_broker_that_is_away_is_one_line() -> None:
    result = asked(ScoreLog("127.0.0.1:1"), "--before", "4h", "--after", "2h")
    assert result.exit_code == 1
    assert "cannot be read" in result.output


@pytest.mark.full
def test_the_monitor_explains_the_change_that_it_found(kafka: str, tmp_path: Path) -> None:
    log = ScoreLog(kafka).create()
    now, rng = time.time(), random.Random(52)
    log.produce(*answers(rng, 0, evenly(now - 20 * HOUR, now - HOUR, 3000), "2026-10", 0.92))
    with log.monitor(tmp_path, changes={"false_alarm_days": 300.0}) as monitor:
        wait_until(lambda: is_active(monitor) and read_total(monitor) == 3000, 60, "the calm hours are counted")
        time.sleep(6)  # The detectors learn from them.
        log.produce(*answers(rng, 10_000, evenly(now - HOUR, now, 300), "2026-11", 0.6))

        def explained() -> list[str]:
            return [line for line in monitor.log.read_text().splitlines() if "explained by: " in line]

        wait_until(lambda: any("app=all" in line for line in explained()), 60, "an explanation")
        line = next(line for line in explained() if "app=all" in line)
        assert "change of faithfulness (app=all, lang=all)" in line
        assert "kb_version 2026-11 in place of 2026-10: -0." in line
        samples = monitor.samples()
        assert samples["process_resident_memory_bytes"][0][1] < 150e6
        assert not any(
            "kb_version" in labels or "2026-11" in labels.values()
            for _, found in samples.items()
            for labels, _ in found
        )
        assert monitor.terminate() == 0
    assert "Traceback" not in monitor.log.read_text()
