"""The monitor as its user runs it, on a real Kafka: gauges that equal what is in the log, whatever happens to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consumer.embedded import embedded_broker
from consumer.record import ScoreRecord
from tests.integration.monitor_harness import (
    ALL,
    ScoreLog,
    answers,
    gauge,
    is_active,
    read_total,
    rolling,
    varied,
)
from tests.processes import Running, wait_until
from tests.score_records import DEFINITIONS, score_record, weighted_mean


def assert_gauges(monitor: Running, records: list[ScoreRecord], window: str = "1h") -> None:
    for metric, definition in DEFINITIONS.items():
        labels = {"metric": metric, "definition": definition, "window": window}
        assert gauge(monitor, "rolling_score", **labels, **ALL) == pytest.approx(
            weighted_mean(records, metric), abs=1e-9
        )
        for app in ("helpdesk", "shop"):
            for lang in ("en", "zh"):
                segment = {"app": app, "lang": lang}
                assert gauge(monitor, "rolling_score", **labels, **segment) == pytest.approx(
                    weighted_mean(records, metric, **segment), abs=1e-9
                )


def test_from_the_log_to_the_gauges_and_through_kill_9(kafka: str, tmp_path: Path) -> None:
    """Field cases 1, 4 B, 6, 64 and 71 (b), duplicates, every outcome; then the same again from the log alone."""
    log = ScoreLog(kafka).create()
    now = time.time()
    records = varied(range(200), now)
    odd = [
        *records[:30],  # redelivered
        score_record(1000, now + 86_400, {}),  # future
        score_record(1001, now - 3 * 86_400, {"faithfulness": 0.0}),  # late
        score_record(1002, now, {"faithfulness": 0.0}, run="backfill"),
        score_record(1003, now, {"faithfulness": 0.0}, v=2),
        b'{"v": 1, "id": "x", "event_time": "a word"}',
        b"\xff\x00 not json",
        None,
    ]
    with log.monitor(tmp_path) as monitor:
        wait_until(lambda: is_active(monitor), 30, "an active monitor")
        log.produce(*records, *odd, codec="lz4")
        log.produce(*varied(range(200, 250), now), codec="zstd")
        records = varied(range(250), now)
        wait_until(lambda: read_total(monitor) == 250 + len(odd), 20, "all records read")
        assert_gauges(monitor, records)
        outcomes = {s["outcome"]: v for s, v in monitor.samples()["groundwatch_scores_read_total"]}
        assert outcomes == {
            "counted": 250, "duplicate": 30, "conflict": 0, "future": 1, "late": 1,
            "other_run": 1, "other_version": 1, "undecodable": 3,
        }  # fmt: skip
        assert answers(monitor, "/healthz") == (200, "ok\n")
        assert gauge(monitor, "window_filled_ratio", window="24h", **ALL) == 1
        wait_until(lambda: log.committed() == log.end(), 10, "everything committed")
        before = rolling(monitor)
        monitor.kill()

    with log.monitor(tmp_path, "again") as monitor:
        wait_until(lambda: is_active(monitor), 30, "an active monitor")
        assert_gauges(monitor, records)
        after = rolling(monitor)
        assert after.keys() == before.keys()
        for key, value in after.items():
            # Slices may have left the 5-minute window meanwhile; the hour holds all.
            if "window=5m" not in key:
                assert value == pytest.approx(before[key], abs=1e-9)
        assert read_total(monitor) == 0
        assert monitor.total("groundwatch_score_count") == 0
        # What an earlier process counted is known: redelivery moves nothing.
        fresh = varied(range(250, 260), now)
        log.produce(*records[:50], *fresh)
        wait_until(lambda: read_total(monitor) == 60, 10, "the new records read")
        assert monitor.total("groundwatch_scores_read_total", outcome="duplicate") == 50
        assert monitor.total("groundwatch_score_count", metric="faithfulness") == 10
        assert_gauges(monitor, records + fresh)
        # The same id with another content is no duplicate: both count.
        log.produce(score_record(0, now, {"faithfulness": 1.0}, content_hash="another"))
        wait_until(lambda: monitor.total("groundwatch_scores_read_total", outcome="conflict") == 1, 10, "the conflict")
        assert gauge(monitor, "rolling_samples", metric="faithfulness", window="1h", **ALL) == 261
        began = time.monotonic()
        assert monitor.terminate(10) == 0
        assert time.monotonic() - began < 10
        assert "Traceback" not in monitor.log.read_text()


def test_a_first_start_on_a_long_log_begins_at_the_longest_window(kafka: str, tmp_path: Path) -> None:
    log = ScoreLog(kafka).create()
    now = time.time()
    ancient = [score_record(i, now - 9e5, {"faithfulness": 0.0}) for i in range(11_000)]
    log.produce(*ancient, at=now - 9e5)
    records = varied(range(100), now)
    log.produce(*records)
    with log.monitor(tmp_path) as monitor:
        wait_until(lambda: is_active(monitor), 30, "an active monitor")
        wait_until(lambda: monitor.total("groundwatch_scores_read_total", outcome="counted") == 100, 30, "the records")
        assert_gauges(monitor, records)
        # 10,000 offsets before the window are read all the same, because some brokers answer no finer.
        assert monitor.total("groundwatch_scores_read_total", outcome="late") <= 10_000
    assert "skipped 1000 score records" in monitor.log.read_text()


@pytest.mark.full
def test_on_the_embedded_broker(tmp_path: Path) -> None:
    with embedded_broker(tmp_path / "broker.log") as bootstrap:
        log = ScoreLog(bootstrap).create()
        now = time.time()
        records = varied(range(60), now)
        log.produce(*records[:40])
        with log.monitor(tmp_path) as monitor:
            wait_until(lambda: read_total(monitor) == 40, 30, "the first batch")
            log.produce(*records[40:])
            wait_until(lambda: read_total(monitor) == 60, 10, "the second batch")
            assert_gauges(monitor, records)
            wait_until(lambda: log.committed() == 60, 10, "everything committed")
            monitor.kill()
        with log.monitor(tmp_path, "again") as monitor:
            wait_until(lambda: is_active(monitor), 30, "an active monitor")
            assert_gauges(monitor, records)


def run_monitor(environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "consumer", "monitor"], env=os.environ | environment, capture_output=True, timeout=30
    )
    return done.returncode, done.stderr.decode()


def test_a_missing_topic_ends_the_start_with_one_clear_line(kafka: str) -> None:
    log = ScoreLog(kafka)
    code, said = run_monitor(log.environment("127.0.0.1:0"))
    assert code == 1
    assert f"Error: the score topic {log.topic} cannot be used: missing; run `groundwatch topics create`" in said
    assert "Traceback" not in said


def test_a_busy_port_and_a_multiprocess_folder_end_the_start(kafka: str) -> None:  # field case 54
    log = ScoreLog(kafka)
    address = kafka.split(",")[0]
    code, said = run_monitor(log.environment(address))
    assert code == 1
    assert f"Error: cannot listen on {address}" in said
    assert "Traceback" not in said
    code, said = run_monitor(log.environment("127.0.0.1:0") | {"PROMETHEUS_MULTIPROC_DIR": "/tmp"})
    assert code == 1
    assert "Error: PROMETHEUS_MULTIPROC_DIR is set" in said


def test_the_monitor_imports_no_torch() -> None:
    code = "import sys, consumer.monitoring_process; sys.exit(any(m in sys.modules for m in ('torch', 'transformers')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
