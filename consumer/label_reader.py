"""From the topic of labels to the corrected score and to Redis: a plain consumer in a thread of the monitor.

It joins no group and commits nothing: the topic is compacted and small, so every monitor reads at its start what there
is of the time that matters, and goes on from there. Nothing of it is ever fatal: without labels there are raw scores.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from consumer import kafka_config
from consumer.case_store import DAY, HOUR, CaseStore, CaseStoreError, open_store
from consumer.delivered import Delivered, consume
from consumer.health import Pulse
from consumer.label import change_of
from consumer.record import RecordRejected
from consumer.scorebook import LABEL_OUTCOMES, Scorebook
from consumer.settings import Settings
from metrics.exposition import PREFIX

log = logging.getLogger(__name__)

LOOP = "labels"
BATCH = 200
POLL_SECONDS = 0.5
CALL_SECONDS = 5.0
AGAIN_SECONDS = 10.0
"""After which a topic that is missing, or a broker that refuses, is asked anew."""
STEP_BACK = 10_000
"""Offsets read before the one that a broker names for a time: some answer no finer than a batch."""
INDEX_WAIT_SECONDS = 5.0
MOST_WAITING = 20_000
"""Labels that wait for Redis; beyond it they are forgotten here, and read again when Redis answers."""
STOP_SECONDS = 5.0


class LabelReader(Collector):
    """Reads labels until `stop` is set. `run` never raises."""

    def __init__(
        self,
        settings: Settings,
        book: Scorebook,
        store: CaseStore | None,
        pulse: Pulse,
        *,
        stop: threading.Event,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """`store`: where labels are shown beside cases. `now` is wall-clock time, `monotonic` measures waiting."""
        self._settings = settings
        self._topic = settings.topics.labels
        self._seconds = max(settings.labels.days * DAY, settings.cases.ttl_hours * HOUR)
        self._book = book
        self._store = store
        self._pulse = pulse
        self._stop = stop
        self._now = now
        self._monotonic = monotonic
        self._read = Counter(dict.fromkeys((*LABEL_OUTCOMES, "undecodable", "other_version"), 0))
        self._waiting: dict[str, tuple[bytes, bytes | None]] = {}
        self._overflowed = False
        self._index_at = 0.0
        self._told = ""

    def collect(self) -> Iterator[Metric]:
        read = CounterMetricFamily(
            f"{PREFIX}labels_read", "Labels read, by what they are good for.", labels=["outcome"]
        )
        for outcome, number in list(self._read.items()):
            read.add_metric([outcome], number)
        yield read
        if self._store is not None:
            waiting = GaugeMetricFamily(f"{PREFIX}labels_waiting", "Labels that Redis does not show yet.")
            waiting.add_metric([], len(self._waiting))
            yield waiting

    def run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except KafkaException as error:
                self._tell(f"labels cannot be read yet: {self._explained(error.args[0])}")
            except Exception:
                log.exception("reading labels failed; it begins anew")
            if self._stop.wait(AGAIN_SECONDS):
                break
            self._pulse.beat(LOOP)
        self._pulse.end(LOOP)

    def _follow(self) -> None:
        """Read the topic from its beginning (as far as it matters) on; returns where there is none."""
        config = kafka_config.consumer(self._settings.kafka, self._settings.monitor.group) | {
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 1024,
            "fetch.message.max.bytes": 200_000,
        }
        consumer = Consumer(config, logger=logging.getLogger("librdkafka"))
        try:
            begin = self._begin(consumer)
            if not begin:
                self._tell(f"no labels: the topic {self._topic} does not exist; groundwatch topics create makes it")
                return
            self._waiting, self._overflowed = {}, False
            self._book.labels.forget()
            consumer.assign(begin)
            behind = {tp.partition for tp in begin}
            while not self._stop.is_set() and not self._overflowed:
                self._pulse.beat(LOOP)
                for record in consume(consumer, BATCH, POLL_SECONDS):
                    error = record.error()
                    if error is None:
                        self._take(record)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        behind.discard(record.partition())
                    elif error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART):
                        raise KafkaException(error)
                    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # no group is used: assigned by hand
                        log.debug("reading labels: %s", error.str())
                if not behind:
                    self._tell("")
                    self._index()
        finally:
            consumer.close()

    def _begin(self, consumer: Consumer) -> list[TopicPartition]:
        topic = consumer.list_topics(timeout=CALL_SECONDS).topics.get(self._topic)
        if topic is None or (topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
            return []
        if topic.error is not None:
            raise KafkaException(topic.error)
        # A label is appended after its event.
        at = max(0.0, self._now() - self._seconds - HOUR)
        asked = [TopicPartition(self._topic, partition, int(at * 1000)) for partition in topic.partitions]
        begin = []
        for found in consumer.offsets_for_times(asked, CALL_SECONDS):
            low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, found.partition), CALL_SECONDS)
            offset = (found.offset if found.offset >= 0 else high) - STEP_BACK
            begin.append(TopicPartition(self._topic, found.partition, max(low, offset)))
        return begin

    def _take(self, record: Delivered) -> None:
        key, value = record.key(), record.value()
        try:
            change = change_of(key, value)
            outcome = self._book.take_label(change)
        except RecordRejected as rejected:
            log.warning("offset %d of %s is no label: %s", record.offset(), self._topic, rejected)
            outcome = rejected.outcome
        else:
            if self._store is not None:
                self._waiting[change.id] = (key or b"", value)
                self._overflowed = len(self._waiting) > MOST_WAITING
        self._read[outcome] += 1

    def _index(self) -> None:
        """Show in Redis what was read. What the command wrote there itself is written again, onto itself."""
        if self._store is None or self._monotonic() < self._index_at:
            return
        while self._waiting and not self._stop.is_set():
            names = list(self._waiting)[:BATCH]
            try:
                self._store.index_labels([change_of(*self._waiting[name]) for name in names], self._now())
            except CaseStoreError as error:
                self._tell(f"labels wait until Redis takes them: {error}")
                self._index_at = self._monotonic() + INDEX_WAIT_SECONDS
                return
            for name in names:
                del self._waiting[name]
            self._pulse.beat(LOOP)

    def _explained(self, error: KafkaError) -> str:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return f"this user may not read topic {self._topic}; grant it (docs/production.md lists all rights)"
        return error.str()

    def _tell(self, what: str) -> None:
        """Once, as long as it stays so."""
        if what and what != self._told:
            log.info("%s", what)
        self._told = what


@contextmanager
def reading_labels(
    settings: Settings,
    book: Scorebook,
    pulse: Pulse,
    registry: CollectorRegistry,
    *,
    now: Callable[[], float],
    monotonic: Callable[[], float],
) -> Iterator[None]:
    """Labels are read meanwhile.

    Raises:
        CaseStoreError: `redis.cases_url` is no URL of a Redis. One that is away is no error.
    """
    stop = threading.Event()
    store = open_store(settings) if settings.redis.cases_url else None
    reader = LabelReader(settings, book, store, pulse, stop=stop, now=now, monotonic=monotonic)
    registry.register(reader)
    thread = threading.Thread(target=reader.run, name="labels", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_SECONDS)
