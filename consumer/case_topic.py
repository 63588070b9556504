"""Case files straight from the topic, for whoever has no Redis for them: slower, and only as far as retention goes."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.case_file import CaseFile, decode_case
from consumer.case_filter import CaseFilter, case_key, key_of, named, newest_matching
from consumer.deadletter_reading import TopicReader, Unreadable
from consumer.interrupts import Interrupts
from consumer.label import Label
from consumer.label_topic import read_labels
from consumer.logs import one_line
from consumer.record import RecordRejected
from consumer.settings import Settings

log = logging.getLogger(__name__)

CALL_SECONDS = 10.0
QUIET_SECONDS = 15.0
BATCH = 200
AHEAD_SECONDS = 3600.0
"""A case is appended after its event, unless clocks differ."""


class CaseTopicError(Exception):
    """The topic cannot be read; one line that says what to do."""


class CaseTopic:
    """The topic of case files, read anew by every method, as it is at that moment. Nothing is committed."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._topic = settings.topics.flagged
        self._servers = settings.kafka.bootstrap_servers
        self._monotonic = monotonic
        self._config = kafka_config.consumer(settings.kafka, f"groundwatch-cases-{uuid.uuid4().hex[:8]}") | {
            "log_level": 0
        }

    def select(self, wanted: CaseFilter, limit: int | None = None) -> list[CaseFile]:
        """The cases that match, newest event first; the latest record of an event and content counts."""
        verdicts = {}
        if wanted.said:
            try:
                verdicts = {key: label.verdict for key, label in self._labels().items()}
            except Unreadable as error:
                raise CaseTopicError(str(error)) from None
        return newest_matching(self._cases(wanted.since), wanted, limit, verdicts)

    def find(self, reference: str) -> list[CaseFile]:
        """The cases that `reference` names, as `CaseStore.find` understands it."""
        return named(self._cases(None), reference)

    def labels(self, cases: Sequence[CaseFile]) -> dict[str, Label]:
        """By case key, the labels of those of `cases` that have one; none where their topic cannot be read."""
        if not cases:
            return {}
        try:
            found = self._labels()
        except Unreadable as error:
            log.debug("no labels are shown: %s", error)
            return {}
        return {key: found[key] for key in map(case_key, cases) if key in found}

    def _labels(self) -> dict[str, Label]:
        with TopicReader(self._settings, CALL_SECONDS, Interrupts(), self._monotonic) as reader:
            labels = read_labels(reader, self._settings)
        return {key_of(label.id, label.content_hash): label for label in labels.values()}

    def _cases(self, since: float | None) -> Iterator[CaseFile]:
        consumer = Consumer(self._config)
        try:
            yield from self._read(consumer, since)
        except KafkaException as error:
            raise CaseTopicError(
                one_line(f"the topic {self._topic} at {self._servers} cannot be read: {error.args[0].str()}")
            ) from None
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, since: float | None) -> Iterator[CaseFile]:
        topic = consumer.list_topics(self._topic, timeout=CALL_SECONDS).topics[self._topic]
        if topic.error is not None:
            raise CaseTopicError(f"the topic {self._topic}: {topic.error.str()}; run `groundwatch topics create`")
        starts, ends = {}, {}
        for partition in topic.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=CALL_SECONDS)
            start = low
            if since is not None and since > AHEAD_SECONDS:
                asked = TopicPartition(self._topic, partition, int((since - AHEAD_SECONDS) * 1000))
                offset = consumer.offsets_for_times([asked], timeout=CALL_SECONDS)[0].offset
                start = max(low, high if offset < 0 else offset)
            if start < high:
                starts[partition], ends[partition] = start, high
        consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in starts.items()])
        heard = self._monotonic()
        open_ = set(ends)
        while open_:
            for message in consumer.consume(BATCH, 0.5):
                error = message.error()
                if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # no group is used: assigned by hand
                if error is not None:
                    raise KafkaException(error)
                heard = self._monotonic()
                if (message.offset() or 0) < ends[message.partition() or 0]:
                    try:
                        yield decode_case(message.value())
                    except RecordRejected as rejected:
                        log.debug("offset %s of %s is no case file: %s", message.offset(), self._topic, rejected)
            # A position says more than the last record: marks of transactions have offsets of their own.
            positions = consumer.position([TopicPartition(self._topic, p) for p in open_])
            open_ = {tp.partition for tp in positions if tp.offset < ends[tp.partition]}
            if open_ and self._monotonic() - heard > QUIET_SECONDS:
                raise CaseTopicError(f"the broker at {self._servers} sends nothing more of {self._topic}; try again")
