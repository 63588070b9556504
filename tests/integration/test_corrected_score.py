"""Labels to the monitor's corrected score, on a real Kafka and a real Redis, as people give them and through a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.case_filter import CaseFilter
from consumer.case_store import open_store
from consumer.embedded import embedded_redis, free_port
from consumer.label import LabelChange, label_of
from consumer.label_topic import LabelWriter
from consumer.labelling import put_labels
from consumer.settings import Settings
from tests.case_files import audited
from tests.integration.monitor_harness import ALL, ScoreLog, answers, gauge, is_active, read_total
from tests.processes import Running, wait_until
from tests.score_records import score_record
from tests.topic_making import make_topic

pytestmark = pytest.mark.full
HOUR = {"metric": "faithfulness", "window": "1h"}
LABELS = 60


def corrected(monitor: Running) -> float | None:
    return gauge(monitor, "rolling_score_corrected", **HOUR, **ALL)


def known(monitor: Running) -> float:
    return gauge(monitor, "correction_labels", metric="faithfulness", **ALL) or 0.0


def settings_of(log: ScoreLog, redis_url: str, labels: str, flagged: str) -> Settings:
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": log.bootstrap},
            "topics": {"scores": log.topic, "labels": labels, "flagged": flagged},
            "monitor": {"group": log.group},
            "redis": {"cases_url": redis_url},
        }
    )


def changes(now: float, count: int = LABELS) -> list[LabelChange]:
    """Of five answers that the judge finds perfect, people find one bad."""
    made = []
    for n in range(count):
        case = audited(n, now - 3600 - n)
        label = label_of(case, "good" if n % 5 else "bad", by="anna", note="", now=now)
        made.append(LabelChange(label.id, label))
    return made


def test_sixty_labels_correct_the_gauge_and_a_kill_does_not_matter(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """One of them given by the command, the others as a page gives them; the monitor knows of them from Kafka alone."""
    log = ScoreLog(kafka).create()
    topics = {"labels": f"{log.topic}-labels", "flagged": f"{log.topic}-flagged"}
    make_topic(kafka, topics["labels"], 1, cleanup_policy="compact")
    make_topic(kafka, topics["flagged"], 1)
    settings = settings_of(log, redis_url, topics["labels"], topics["flagged"])
    now = time.time()
    store = open_store(settings)
    store.put([audited(n, now - 3600 - n) for n in range(LABELS)], now)
    log.produce(*(score_record(1000 + n, now - 60, {"faithfulness": (1.0, 0.8)[n % 2]}) for n in range(200)))
    sections: dict[str, dict[str, object]] = {"topics": dict(topics), "redis": {"cases_url": redis_url}}
    given = changes(now)
    with log.monitor(tmp_path, "monitor", **sections) as monitor:
        wait_until(lambda: is_active(monitor) and read_total(monitor) == 200, 60, "200 scores read")
        with LabelWriter(settings, 10) as writer:
            done = put_labels(writer, store, given[:49], now=now)
        assert (done.written, done.not_indexed) == (49, None)
        wait_until(lambda: known(monitor) == 49, 20, "49 labels")
        assert corrected(monitor) is None
        environment = log.environment("127.0.0.1:0", **sections)
        said = subprocess.run(
            [sys.executable, "-m", "consumer", "label", "evt-49", "good", "--by", "anna"],
            env=os.environ | environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        wait_until(lambda: known(monitor) == 50, 20, "50 labels")
        with LabelWriter(settings, 10) as writer:
            put_labels(writer, store, given[50:], now=now)
            # Not audited: it moves nothing, however many there are.
            flagged = [replace(c.label, id=f"f-{n}", verdict="bad", why=("flagged",), audit_probability=None)
                       for n, c in enumerate(given) if c.label]  # fmt: skip
            put_labels(writer, None, [LabelChange(label.id, label) for label in flagged], now=now)
        wait_until(lambda: monitor.total("groundwatch_labels_read_total") == 2 * LABELS, 20, "all labels read")
        assert monitor.total("groundwatch_labels_read_total", outcome="not_audited") == LABELS
        # Raw: 0.9. Twelve of sixty labels say that a perfect score was wrong.
        assert gauge(monitor, "rolling_score", **HOUR, **ALL) == pytest.approx(0.9)
        assert corrected(monitor) == pytest.approx(0.7)
        low = gauge(monitor, "rolling_score_corrected_low", **HOUR, **ALL)
        high = gauge(monitor, "rolling_score_corrected_high", **HOUR, **ALL)
        assert low is not None
        assert high is not None
        assert 0.5 < low < 0.65 < 0.75 < high < 0.85
        assert answers(monitor, "/healthz") == (200, "ok\n")
        monitor.kill()

    with log.monitor(tmp_path, "again", **sections) as monitor:
        wait_until(lambda: is_active(monitor), 60, "an active monitor")
        wait_until(lambda: corrected(monitor) is not None, 20, "corrected again")
        assert corrected(monitor) == pytest.approx(0.7)
        # The twelve bad ones are labelled anew, and one is taken away.
        with LabelWriter(settings, 10) as writer:
            better = [replace(c.label, verdict="good") for c in given if c.label and c.label.verdict == "bad"]
            put_labels(writer, store, [LabelChange(label.id, label) for label in better], now=now)
            wait_until(lambda: corrected(monitor) == pytest.approx(0.9), 20, "relabelled")
            put_labels(writer, store, [LabelChange("evt-0", None)], now=now)
        wait_until(lambda: known(monitor) == 59, 20, "one label fewer")
        assert monitor.terminate(10) == 0
        assert "Traceback" not in monitor.log.read_text()


def test_a_missing_topic_is_told_once_and_found_when_it_comes(kafka: str, tmp_path: Path) -> None:
    log = ScoreLog(kafka).create()
    labels = f"{log.topic}-labels"
    now = time.time()
    log.produce(*(score_record(n, now - 60, {"faithfulness": 1.0}) for n in range(50)))
    with log.monitor(tmp_path, topics={"labels": labels}) as monitor:
        wait_until(lambda: is_active(monitor) and read_total(monitor) == 50, 60, "scores read")
        wait_until(lambda: f"no labels: the topic {labels} does not exist" in monitor.log.read_text(), 20, "one line")
        make_topic(kafka, labels, 1, cleanup_policy="compact")
        settings = settings_of(log, "", labels, "unused")
        with LabelWriter(settings, 20) as writer:
            put_labels(writer, None, changes(now), now=now)
        wait_until(lambda: corrected(monitor) == pytest.approx(0.8), 40, "labels of a topic that came later")
        assert monitor.log.read_text().count("does not exist") == 1
        assert gauge(monitor, "monitor_active") == 1


def test_labels_that_redis_missed_are_shown_when_it_answers_again(kafka: str, tmp_path: Path) -> None:
    log = ScoreLog(kafka).create()
    topics = {"labels": f"{log.topic}-labels", "flagged": f"{log.topic}-flagged"}
    for name in topics.values():
        make_topic(kafka, name, 1)
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    settings = settings_of(log, url, topics["labels"], topics["flagged"])
    now = time.time()
    store = open_store(settings)
    log.produce(score_record(1, now - 60, {"faithfulness": 1.0}))
    with log.monitor(tmp_path, topics=dict(topics), redis={"cases_url": url}) as monitor:
        wait_until(lambda: is_active(monitor) and read_total(monitor) == 1, 60, "active")
        with LabelWriter(settings, 10) as writer:
            done = put_labels(writer, store, [*changes(now), LabelChange("evt-1", None)], now=now)
        assert done.not_indexed is not None
        assert "does not answer" in done.not_indexed
        wait_until(lambda: known(monitor) == LABELS - 1, 20, "labels count without Redis")
        assert monitor.total("groundwatch_labels_waiting") == LABELS
        with embedded_redis(tmp_path / "redis.log", port=port):
            wait_until(lambda: monitor.total("groundwatch_labels_waiting") == 0, 40, "shown")
            assert store.label_counts() == {"good": LABELS - 13, "bad": 12}
            store.put([audited(n, now) for n in range(3)], now)
            assert len(store.keys(CaseFilter(said=("none",)))) == 1
