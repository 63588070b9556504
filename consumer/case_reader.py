"""From the topic of case files to Redis: a plain consumer in a thread of the monitor, which nothing else waits for.

An offset is committed only once the case files below it are stored. While Redis is away the partition is paused and the
batch in hand is tried again, so nothing is lost and the scores are not held up.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from consumer import kafka_config
from consumer.case_file import CaseFile, decode_case
from consumer.case_store import CaseStore, CaseStoreError, open_store
from consumer.health import Pulse
from consumer.record import RecordRejected
from consumer.settings import Settings
from metrics.exposition import PREFIX

log = logging.getLogger(__name__)

LOOP = "cases"
BATCH = 50
POLL_SECONDS = 0.5
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 15.0
LOOK_SECONDS = 5.0
"""How often expired cases are swept and the store is counted."""
BROKEN_SECONDS = 5.0
STOP_SECONDS = 5.0
MAKE_ROOM_SHARE = 100
"""One in so many of the oldest goes where Redis has no memory left."""
OUTCOMES = ("stored", "expired", "forgotten", "undecodable", "other_version")
GONE = ("expired", "cap", "memory")


class CaseReader(Collector):
    """Reads case files and stores them until `stop` is set. `run` never raises: it is nobody's reason to be restarted.

    Several monitors may each run one: the group gives the partition to one of them.
    """

    def __init__(
        self,
        settings: Settings,
        store: CaseStore,
        pulse: Pulse,
        *,
        stop: threading.Event,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """`now` is wall-clock time, `monotonic` measures waiting."""
        self._settings = settings
        self._topic = settings.topics.flagged
        self._group = f"{settings.monitor.group}-cases"
        self._store = store
        self._pulse = pulse
        self._stop = stop
        self._now = now
        self._monotonic = monotonic
        self._up: bool | None = None
        self._stored: int | None = None
        self._read = Counter(dict.fromkeys(OUTCOMES, 0))
        self._gone = Counter(dict.fromkeys(GONE, 0))
        self._lag: dict[int, int] = {}
        self._batch: list[Message] = []
        self._wait = 0.0
        self._retry_at = 0.0
        self._looked_at: float | None = None

    def collect(self) -> Iterator[Metric]:
        """What /metrics shows; called in the listener's thread, so Redis is not asked here."""
        if self._up is not None:
            up = GaugeMetricFamily(f"{PREFIX}case_store_up", "1 while Redis takes case files, 0 while they wait.")
            up.add_metric([], float(self._up))
            yield up
        if self._stored is not None:
            stored = GaugeMetricFamily(f"{PREFIX}cases_stored", "Case files in Redis, when last counted.")
            stored.add_metric([], self._stored)
            yield stored
        read = CounterMetricFamily(
            f"{PREFIX}cases_read", "Case files read, by what became of them.", labels=["outcome"]
        )
        gone = CounterMetricFamily(
            f"{PREFIX}cases_removed", "Case files removed from Redis, by why.", labels=["reason"]
        )
        lag = GaugeMetricFamily(
            f"{PREFIX}case_lag_records", "Case files that wait to be stored.", labels=["topic", "partition"]
        )
        for family, counts in ((read, self._read), (gone, self._gone)):
            for name, number in list(counts.items()):
                family.add_metric([name], number)
        for partition, behind in list(self._lag.items()):
            lag.add_metric([self._topic, str(partition)], behind)
        yield from (read, gone, lag)

    def run(self) -> None:
        while not self._stop.is_set():
            try:
                self._consume()
            except KafkaException as error:
                log.warning("case files cannot be read yet: %s", error.args[0].str())
            except Exception:
                log.exception("reading case files failed; it begins anew")
            if self._stop.wait(BROKEN_SECONDS):
                break
            self._pulse.beat(LOOP)
        self._pulse.end(LOOP)

    def _consume(self) -> None:
        config = kafka_config.consumer(self._settings.kafka, self._group) | {
            # Case files may be large, and the monitor is small.
            "queued.max.messages.kbytes": 4096,
            "fetch.message.max.bytes": 1_000_000,
        }
        consumer = Consumer(config, logger=logging.getLogger("librdkafka"))
        self._batch, self._wait = [], 0.0
        try:
            consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
            while not self._stop.is_set():
                self._pulse.beat(LOOP)
                self._turn(consumer)
        finally:
            self._lag = {}
            consumer.close()

    def _turn(self, consumer: Consumer) -> None:
        """One poll, and one attempt to store what is in hand."""
        # Polling goes on while paused: it keeps this member in the group.
        for message in consumer.consume(BATCH, POLL_SECONDS):
            error = message.error()
            if error is None:
                self._batch.append(message)
            elif error.code() != KafkaError._PARTITION_EOF:
                log.warning("reading case files: %s", error.str())
        now = self._monotonic()
        if now < self._retry_at:
            return
        try:
            if self._batch:
                self._store_batch(consumer)
            if self._looked_at is None or now - self._looked_at >= LOOK_SECONDS or self._wait:
                self._look(consumer)
                self._looked_at = now
        except CaseStoreError as error:
            self._failed(consumer, error)
            return
        if self._wait:
            log.info("Redis takes case files again")
            consumer.resume(consumer.assignment())
        self._up, self._wait = True, 0.0

    def _store_batch(self, consumer: Consumer) -> None:
        portion = BATCH
        while self._batch:
            part = self._batch[:portion]
            refused: Counter[str] = Counter()
            cases = [case for message in part if (case := self._decoded(message, refused)) is not None]
            try:
                outcomes = self._store.put(cases, self._now())
            except CaseStoreError as error:
                if not (error.full and self._made_room()):
                    raise
                # Fewer at a time: a portion that needs more than the room made would push out its own beginning.
                portion = max(1, portion // 2)
                continue
            # Counted once they are stored, so that what is tried again counts once.
            self._gone["cap"] += outcomes.pop("dropped", 0)
            self._read.update(outcomes)
            self._read.update(refused)
            self._batch = self._batch[len(part) :]
            self._commit(consumer, part)

    def _commit(self, consumer: Consumer, stored: list[Message]) -> None:
        offsets = {m.partition() or 0: (m.offset() or 0) + 1 for m in stored}
        try:
            consumer.commit(offsets=[TopicPartition(self._topic, p, o) for p, o in offsets.items()], asynchronous=False)
        except KafkaException as error:
            # They are stored; the next commit covers them, and storing them again would change nothing.
            log.info("a commit of case files was not taken: %s", error.args[0].str())

    def _decoded(self, message: Message, refused: Counter[str]) -> CaseFile | None:
        try:
            return decode_case(message.value())
        except RecordRejected as rejected:
            log.warning("offset %s of %s is no case file: %s", message.offset(), self._topic, rejected)
            refused[rejected.outcome if rejected.outcome in OUTCOMES else "undecodable"] += 1
        except Exception as error:
            log.warning("offset %s of %s is no case file: %r", message.offset(), self._topic, error)
            refused["undecodable"] += 1
        return None

    def _look(self, consumer: Consumer) -> None:
        now = self._now()
        expired, over = self._store.sweep(now)
        self._gone["expired"] += expired
        self._gone["cap"] += over
        self._stored = self._store.count(now)
        lag = {}
        for tp in consumer.position(consumer.assignment()):
            bounds = consumer.get_watermark_offsets(tp, cached=True)
            if bounds is not None and bounds[1] >= 0 and tp.offset >= 0:
                lag[tp.partition] = max(0, bounds[1] - tp.offset)
        self._lag = lag

    def _failed(self, consumer: Consumer, error: CaseStoreError) -> None:
        if not self._wait:
            log.warning("case files wait until Redis takes them: %s", error)
            consumer.pause(consumer.assignment())
        self._up = False
        self._wait = min(LONGEST_WAIT_SECONDS, self._wait * 2 or FIRST_WAIT_SECONDS)
        self._retry_at = self._monotonic() + self._wait

    def _made_room(self) -> bool:
        """The oldest cases go where Redis has no memory left; False where there were none."""
        try:
            removed = self._store.drop_oldest(10 + (self._stored or 0) // MAKE_ROOM_SHARE)
        except CaseStoreError as error:
            log.debug("no room could be made: %s", error)
            return False
        self._gone["memory"] += removed
        if removed:
            log.warning(
                "Redis is full: %d of the oldest case files were removed; give it more memory, or lower cases.most",
                removed,
            )
        return removed > 0

    def _assigned(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        consumer.incremental_assign(assigned)
        if self._wait:
            consumer.pause(assigned)

    def _revoked(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        gone = {tp.partition for tp in revoked}
        # Whoever owns them now reads these again.
        self._batch = [message for message in self._batch if message.partition() not in gone]
        self._lag = {p: behind for p, behind in self._lag.items() if p not in gone}
        consumer.incremental_unassign(revoked)


@contextmanager
def keeping_cases(
    settings: Settings,
    pulse: Pulse,
    registry: CollectorRegistry,
    *,
    now: Callable[[], float],
    monotonic: Callable[[], float],
) -> Iterator[None]:
    """Case files are read and stored meanwhile; where that is not wanted, one line says so.

    Raises:
        CaseStoreError: `redis.cases_url` is no URL of a Redis. One that is away is no error.
    """
    if not settings.redis.cases_url:
        log.info(
            "case files are not kept: redis.cases_url is not set; `groundwatch cases` reads them from the topic %s",
            settings.topics.flagged,
        )
        yield
        return
    stop = threading.Event()
    reader = CaseReader(settings, open_store(settings), pulse, stop=stop, now=now, monotonic=monotonic)
    registry.register(reader)
    thread = threading.Thread(target=reader.run, name="cases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_SECONDS)
