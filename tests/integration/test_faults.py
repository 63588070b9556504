"""Killed workers, killed brokers, a Redis that stops: nothing is lost, and the gauge equals the records."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from consumer.embedded import embedded_redis, free_port
from consumer.record import ScoreRecord, decode_record
from consumer.settings import Settings
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.integration.scorer_harness import event, produce, read_all
from tests.processes import Running, groundwatch, wait_until
from tests.services import KAFKA, Cluster, kafka_cluster

pytestmark = pytest.mark.full
METRIC = "topic_similarity"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Cluster]:
    if not KAFKA.exists():
        pytest.skip("no real Kafka to kill: ../shared/kafka is absent")
    with kafka_cluster(tmp_path / "k", 3) as cluster:
        yield cluster


def environment(bootstrap: str, replication: int = 1) -> dict[str, str]:
    tag = uuid.uuid4().hex[:8]
    names = ("scores", "flagged", "deadletter", "redrive", "labels")
    return {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "GROUNDWATCH__KAFKA__CONSUMER__SESSION_TIMEOUT_MS": "6000",
        "GROUNDWATCH__TOPICS__EVENTS": f'["events-{tag}"]',
        **{f"GROUNDWATCH__TOPICS__{name.upper()}": f"{name}-{tag}" for name in names},
        "GROUNDWATCH__TOPICS__PARTITIONS": "4",
        "GROUNDWATCH__TOPICS__REPLICATION": str(replication),
        "GROUNDWATCH__SCORER__GROUP": f"scorer-{tag}",
        "GROUNDWATCH__MONITOR__GROUP": f"monitor-{tag}",
        "GROUNDWATCH__SAMPLING__RATE": "0.8",
        "GROUNDWATCH__SAMPLING__ALWAYS": '[{"name": "thumbs_down", "negative_feedback": true}]',
        "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{free_port()}",
        "GROUNDWATCH__METRICS__MONITOR__LISTEN": f"127.0.0.1:{free_port()}",
    }  # fmt: skip


def worker(stack: ExitStack, command: str, values: dict[str, str], folder: Path) -> Running:
    listen = {"score": "SCORER", "monitor": "MONITOR"}[command]
    return stack.enter_context(
        groundwatch(command, values[f"GROUNDWATCH__METRICS__{listen}__LISTEN"], folder / f"{command}.log", values)
    )


def distinct_records(settings: Settings) -> dict[str, ScoreRecord]:
    """The first record of every event id: repeats are what at-least-once brings."""
    records: dict[str, ScoreRecord] = {}
    for raw in read_all(settings.kafka.bootstrap_servers, settings.topics.scores):
        record = decode_record(raw.value)
        records.setdefault(record.id, record)
    return records


def weighted_mean(records: dict[str, ScoreRecord]) -> float:
    scores = [r.scores[METRIC] for r in records.values() if METRIC in r.scores]
    return math.fsum(s.value / s.probability for s in scores) / math.fsum(1 / s.probability for s in scores)


def gauge(monitor: Running, name: str) -> float:
    """The gauge over all segments in the longest window; NaN while it is not exported."""
    try:
        samples = monitor.samples().get(f"groundwatch_{name}", [])
    except OSError:
        return math.nan
    for labels, value in samples:
        if labels.get("metric") == METRIC and labels.get("window") == "24h" and labels.get("app") == "all":
            return value
    return math.nan


def feed(settings: Settings, events: int, per_second: float) -> threading.Thread:
    def run() -> None:
        for number in range(events):
            feedback = {"feedback": -1} if number % 10 == 0 else {}
            produce(settings.kafka.bootstrap_servers, settings.topics.events[0], [event(number, **feedback)])
            time.sleep(1 / per_second)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_kills_of_workers_and_brokers_lose_nothing(brokers: Cluster, tmp_path: Path) -> None:
    """`kill -9` of scorer, monitor and two brokers in turn under load."""
    values = environment(brokers.bootstrap, replication=3)
    settings = load(None, values).settings
    create_topics(settings, 30)
    total = 1200
    with ExitStack() as stack:
        scorer = worker(stack, "score", values, tmp_path)
        monitor = worker(stack, "monitor", values, tmp_path)
        wait_until(lambda: scorer.total("groundwatch_build_info") > 0, 60, "scorer up")
        feeder = feed(settings, total, 30)
        time.sleep(8)
        scorer.kill()
        scorer = worker(stack, "score", values, tmp_path)
        time.sleep(8)
        brokers.control("kill", "--broker", "2")
        time.sleep(6)
        brokers.control("restart", "--broker", "2")
        monitor.kill()
        monitor = worker(stack, "monitor", values, tmp_path)
        time.sleep(8)
        brokers.control("kill", "--broker", "1")
        time.sleep(6)
        brokers.control("restart", "--broker", "1")
        feeder.join()
        expected = _expected_ids(settings, total)
        wait_until(lambda: set(distinct_records(settings)) == expected, 120, "every sampled event has a record")
        records = distinct_records(settings)
        wait_until(lambda: gauge(monitor, "rolling_samples") == len(expected), 60, "the monitor has counted them all")
        after_kills = gauge(monitor, "rolling_score")
        assert abs(after_kills - weighted_mean(records)) < 1e-9
        assert monitor.terminate() == 0
        assert scorer.terminate() == 0
    undisturbed = _undisturbed(settings, values, len(expected), tmp_path)
    assert abs(after_kills - undisturbed) < 1e-4


def _undisturbed(settings: Settings, values: dict[str, str], expected: int, folder: Path) -> float:
    """The gauge of fresh workers that read the same events and are left in peace."""
    events = {"GROUNDWATCH__TOPICS__EVENTS": f'["{settings.topics.events[0]}"]'}
    own = environment(settings.kafka.bootstrap_servers, replication=3) | events
    assert own["GROUNDWATCH__SCORER__GROUP"] != values["GROUNDWATCH__SCORER__GROUP"]
    create_topics(load(None, own).settings, 30)
    with ExitStack() as stack:
        scorer = worker(stack, "score", own, folder)
        monitor = worker(stack, "monitor", own, folder)
        wait_until(lambda: gauge(monitor, "rolling_samples") == expected, 120, "the second monitor has them all")
        found = gauge(monitor, "rolling_score")
        assert monitor.terminate() == 0
        assert scorer.terminate() == 0
    return found


def _expected_ids(settings: Settings, total: int) -> set[str]:
    from consumer.sampling import unit_interval

    return {
        f"e{n}"
        for n in range(total)
        if n % 10 == 0 or unit_interval(settings.sampling.salt, f"e{n}".encode()) < settings.sampling.rate
    }


def test_redis_frozen_then_killed_changes_nothing_but_the_cache_counters(kafka: str, tmp_path: Path) -> None:
    """Design: invariant 8, field case 48: consuming, committing and counting go on, and the state is visible."""
    values = environment(kafka)
    with ExitStack() as stack:
        redis = stack.enter_context(ExitStack())
        url = redis.enter_context(embedded_redis(tmp_path / "redis.log"))
        values["GROUNDWATCH__REDIS__CACHE_URL"] = url
        settings = load(None, values).settings
        create_topics(settings, 30)
        scorer = worker(stack, "score", values, tmp_path)
        wait_until(lambda: scorer.total("groundwatch_build_info") > 0, 60, "scorer up")
        topic = settings.topics.events[0]
        produce(kafka, topic, [event(n, feedback=-1) for n in range(100)])
        wait_until(lambda: scorer.total("groundwatch_events_total", outcome="scored") == 100, 60, "100 scored")
        pid = _redis_pid(url)
        os.kill(pid, signal.SIGSTOP)
        try:
            produce(kafka, topic, [event(n, feedback=-1) for n in range(100, 200)])
            wait_until(lambda: scorer.total("groundwatch_events_total", outcome="scored") == 200, 60, "200 scored")
        finally:
            os.kill(pid, signal.SIGCONT)
        redis.close()
        produce(kafka, topic, [event(n, feedback=-1) for n in range(200, 300)])
        wait_until(lambda: scorer.total("groundwatch_events_total", outcome="scored") == 300, 60, "300 scored")
        assert scorer.total("groundwatch_unscored_total") == 0
        assert scorer.get("/healthz")[0] == 200
        assert scorer.terminate() == 0
    assert len(distinct_records(settings)) == 300


def _redis_pid(url: str) -> int:
    import redis

    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def test_sigterm_while_every_broker_is_dead_exits_within_the_deadline(brokers: Cluster, tmp_path: Path) -> None:
    """Field case 16."""
    values = environment(brokers.bootstrap, replication=3) | {"GROUNDWATCH__SCORER__SHUTDOWN_SECONDS": "10"}
    settings = load(None, values).settings
    create_topics(settings, 30)
    with ExitStack() as stack:
        scorer = worker(stack, "score", values, tmp_path)
        wait_until(lambda: scorer.total("groundwatch_build_info") > 0, 60, "scorer up")
        produce(brokers.bootstrap, settings.topics.events[0], [event(n, feedback=-1) for n in range(20)])
        wait_until(lambda: scorer.total("groundwatch_events_total", outcome="scored") == 20, 60, "20 scored")
        brokers.control("kill")
        begun = time.monotonic()
        scorer.terminate(seconds=20)
        assert time.monotonic() - begun < 13
    # In order, or by the deadline where the client library still waits for a broker.
    log = (tmp_path / "score.log").read_text()
    assert "stopped:" in log or "not stopped within 10 s, leaving" in log
