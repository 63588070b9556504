"""The monitor under rebalances, kills, broker restarts and logs with holes, on a real Kafka."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from consumer.rebuild import Rebuild, Rebuilt, Span, filled_ratio
from consumer.record import encode_record
from consumer.scorebook import Scorebook
from tests.integration.monitor_harness import (
    ALL,
    ScoreLog,
    answers,
    gauge,
    is_active,
    is_standby,
    rolling,
    varied,
)
from tests.processes import Running, wait_until
from tests.score_records import DEFINITIONS, weighted_mean
from tests.services import KAFKA, kafka_cluster


def mean(monitor: Running, metric: str = "faithfulness") -> float | None:
    return gauge(monitor, "rolling_score", metric=metric, definition=DEFINITIONS[metric], window="1h", **ALL)


def samples(monitor: Running) -> float | None:
    return gauge(monitor, "rolling_samples", metric="faithfulness", window="1h", **ALL)


@pytest.mark.full
def test_a_standby_takes_over_from_a_killed_monitor_and_gives_back(kafka: str, tmp_path: Path) -> None:
    """Field cases 5, 6 and 53."""
    log = ScoreLog(kafka).create()
    now = time.time()
    records = varied(range(150), now)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(log.monitor(tmp_path, "first"))
        wait_until(lambda: is_active(first), 30, "the first is active")
        log.produce(*records[:100])
        wait_until(lambda: samples(first) == 100, 15, "the records counted")
        second = stack.enter_context(log.monitor(tmp_path, "second"))
        wait_until(lambda: is_standby(second), 30, "the second is a standby")
        # The partition stays where it is, and a standby shows no rolling gauge.
        wait_until(lambda: is_active(first), 15, "the first is active again")
        assert rolling(second) == {}
        assert gauge(second, "monitor_active") == 0
        assert samples(first) == 100
        assert first.total("groundwatch_scores_read_total", outcome="duplicate") == 0

        first.kill()
        killed = time.monotonic()
        log.produce(*records[100:])
        wait_until(lambda: is_active(second), 30, "the standby has taken over")
        taken_over = time.monotonic() - killed
        wait_until(lambda: samples(second) == 150, 15, "all records counted")
        assert mean(second) == pytest.approx(weighted_mean(records, "faithfulness"), abs=1e-9)
        assert taken_over < 20

        # Away and back: it still commits.
        third = stack.enter_context(log.monitor(tmp_path, "third"))
        wait_until(lambda: is_standby(third) or is_active(third), 30, "the third has joined")
        assert second.terminate(10) == 0
        wait_until(lambda: is_active(third), 30, "the third is active")
        more = varied(range(150, 650), now)
        log.produce(*more)
        wait_until(lambda: samples(third) == 650, 15, "all records counted")
        assert mean(third) == pytest.approx(weighted_mean(records + more, "faithfulness"), abs=1e-9)
        wait_until(lambda: log.committed() == log.end(), 10, "everything committed")


@pytest.mark.full
def test_monitors_come_and_go_and_no_record_is_lost_or_counted_twice(kafka: str, tmp_path: Path) -> None:
    """Field case 5: every few seconds another monitor joins or leaves, while records arrive."""
    log = ScoreLog(kafka).create()
    now = time.time()
    records = varied(range(1200), now)
    stop = threading.Event()

    def arrive() -> None:
        for begin in range(0, 1200, 20):
            log.produce(*records[begin : begin + 20])
            stop.wait(0.5)

    producing = threading.Thread(target=arrive)
    with log.monitor(tmp_path, "constant") as constant:
        wait_until(lambda: is_active(constant), 30, "active")
        producing.start()
        try:
            for turn in range(3):
                with log.monitor(tmp_path, f"guest-{turn}") as guest:
                    wait_until(lambda g=guest: is_standby(g) or is_active(g), 30, "the guest has joined")  # type: ignore[misc]
                    if turn % 2:
                        guest.kill()
                    else:
                        guest.terminate(10)
        finally:
            producing.join()
        wait_until(lambda: is_active(constant), 30, "active in the end")
        wait_until(lambda: samples(constant) == 1200, 30, "every record counted once")
        assert mean(constant) == pytest.approx(weighted_mean(records, "faithfulness"), abs=1e-9)
        wait_until(lambda: log.committed() == log.end(), 10, "everything committed")


@pytest.mark.full
@pytest.mark.skipif(not KAFKA.exists(), reason="no real Kafka of our own to stop: ../shared/kafka is absent")
def test_a_broker_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Field case 10: reading goes on within twice the session timeout; being without a broker is not unhealthy."""
    with kafka_cluster(tmp_path / "k") as cluster:
        log = ScoreLog(cluster.bootstrap).create()
        now = time.time()
        records = varied(range(100), now)
        with log.monitor(tmp_path) as monitor:
            wait_until(lambda: is_active(monitor), 30, "active")
            log.produce(*records[:60])
            wait_until(lambda: samples(monitor) == 60, 15, "the first records")
            cluster.control("kill", "--broker", "1")
            time.sleep(15)
            assert answers(monitor, "/healthz")[0] == 200
            cluster.control("restart", "--broker", "1")
            back = time.monotonic()
            log.produce(*records[60:])
            wait_until(lambda: samples(monitor) == 100, 60, "the records after the restart")
            assert time.monotonic() - back < 30
            assert mean(monitor) == pytest.approx(weighted_mean(records, "faithfulness"), abs=1e-9)
            wait_until(lambda: log.committed() == log.end(), 15, "everything committed")
            # A frozen broker must not hold up the end.
            cluster.control("kill", "--broker", "1")
            began = time.monotonic()
            assert monitor.terminate(15) == 0
            assert time.monotonic() - began < 10


@pytest.mark.full
def test_an_idle_topic_stays_ready(kafka: str, tmp_path: Path) -> None:  # field case 10
    log = ScoreLog(kafka).create()
    with log.monitor(tmp_path) as monitor:
        wait_until(lambda: is_active(monitor), 30, "active")
        deadline = time.monotonic() + 75
        while time.monotonic() < deadline:
            assert is_active(monitor)
            assert answers(monitor, "/healthz")[0] == 200
            time.sleep(5)
        text = monitor.log.read_text()
        assert " ERROR " not in text
        assert " WARNING " not in text


# -- reading back, without a process --------------------------------------------------------------------------------


def read_back(log: ScoreLog, book: Scorebook, **monitor: object) -> Rebuilt:
    rebuild = Rebuild(
        log.settings(**monitor),
        book,
        now=time.time,
        monotonic=time.monotonic,
        stop=threading.Event(),
        beat=lambda: None,
    )
    return rebuild.run(tuple(range(log.partitions)))


def commit(log: ScoreLog, offset: int) -> None:
    with contextlib.closing(Consumer({"bootstrap.servers": log.bootstrap, "group.id": log.group})) as consumer:
        consumer.commit(offsets=[TopicPartition(log.topic, 0, offset)], asynchronous=False)


def counted(book: Scorebook) -> int:
    with book.opened() as (windows, _):
        return sum(
            r.samples
            for r in windows.read(time.time())[0]
            if r.window == "24h" and r.metric == "faithfulness" and r.segment == ("all", "all")
        )


def with_marks(log: ScoreLog, number: int) -> None:
    """Records 0 to `number` in transactions of ten; each of them ends with a mark that uses up an offset."""
    producer = Producer({"bootstrap.servers": log.bootstrap, "transactional.id": log.topic})
    producer.init_transactions()
    for begin in range(0, number, 10):
        producer.begin_transaction()
        for record in varied(range(begin, begin + 10), time.time()):
            producer.produce(log.topic, encode_record(record))
        producer.commit_transaction()


@pytest.mark.full
def test_offsets_that_do_not_exist_hold_up_neither_counting_nor_committing(kafka: str, tmp_path: Path) -> None:
    """Field case 4 B, live."""
    log = ScoreLog(kafka).create()
    with log.monitor(tmp_path) as monitor:
        wait_until(lambda: is_active(monitor), 30, "active")
        with_marks(log, 50)
        more = varied(range(50, 80), time.time())
        log.produce(*more)
        wait_until(lambda: samples(monitor) == 80, 20, "all records counted")
        wait_until(lambda: log.committed() == log.end() == 85, 10, "everything committed")
        assert monitor.total("groundwatch_scores_read_total") == 80


def test_reading_back_ends_at_offsets_that_do_not_exist(kafka: str) -> None:
    """Field cases 4 B and 7: marks of transactions use up offsets that no reader ever sees."""
    log = ScoreLog(kafka).create()
    with_marks(log, 20)
    assert log.end() == 22
    commit(log, 22)
    book = Scorebook(log.settings(), time.time)
    began = time.monotonic()
    rebuilt = read_back(log, book)
    assert rebuilt.complete
    assert counted(book) == 20
    assert time.monotonic() - began < 15


def test_reading_back_counts_what_is_committed_and_nothing_else(kafka: str) -> None:
    log = ScoreLog(kafka).create()
    now = time.time()
    # Appended over 20 hours, so that both pieces have some.
    for hours in range(20, 0, -1):
        log.produce(*varied(range(hours * 10, hours * 10 + 10), now - hours * 3600 + 200), at=now - hours * 3600 + 200)
    commit(log, 195)
    book = Scorebook(log.settings(), time.time)
    rebuilt = read_back(log, book)
    assert (rebuilt.complete, rebuilt.records, counted(book)) == (True, 195, 195)
    assert rebuilt.committed == {0: 195}


def test_the_deadline_bounds_reading_back_and_the_windows_say_what_is_there(kafka: str) -> None:  # field case 7
    log = ScoreLog(kafka).create()
    log.produce(*varied(range(100), time.time()))
    commit(log, 100)
    book = Scorebook(log.settings(), time.time)
    began = time.monotonic()
    rebuilt = read_back(log, book, rebuild_deadline_seconds=1e-6)
    assert time.monotonic() - began < 10
    assert not rebuilt.complete
    assert filled_ratio(rebuilt.spans[0], 3600.0, time.time(), time.time()) < 0.01


@pytest.mark.full
def test_without_a_broker_reading_back_ends_at_the_deadline() -> None:
    log = ScoreLog("127.0.0.1:9")
    began = time.monotonic()
    rebuilt = read_back(log, Scorebook(log.settings(), time.time), rebuild_deadline_seconds=1.0)
    assert (rebuilt.complete, rebuilt.records) == (False, 0)
    assert time.monotonic() - began < 15


def test_filled_ratio_is_the_share_of_the_window_that_was_read() -> None:
    inf = float("inf")
    assert filled_ratio([Span(-inf, inf)], 100, 1000, 1000) == 1
    assert filled_ratio([Span(-inf, inf)], 100, 1000, 950) == 0.5
    assert filled_ratio([Span(950, inf)], 100, 1000, 1000) == 0.5
    # A hole between what was read of the older part and the recent part.
    assert filled_ratio([Span(0, 910), Span(960, inf)], 100, 1000, 1000) == 0.5
    assert filled_ratio([], 100, 1000, 1000) == 0
