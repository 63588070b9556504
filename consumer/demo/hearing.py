"""What the scorer has written so far: score records and case files, read by a plain consumer beside the monitor."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from consumer import kafka_config
from consumer.case_file import CaseFile, decode_case
from consumer.record import RecordRejected, ScoreRecord, decode_record
from consumer.settings import Settings

log = logging.getLogger(__name__)

GROUP = "groundwatch-demo"
BATCH = 500
CALL_SECONDS = 10.0
WAIT_SECONDS = 0.05


class Hearing:
    """Reads both topics from their beginning; nothing is committed."""

    def __init__(self, consumer: Consumer, settings: Settings) -> None:
        self._consumer = consumer
        self._scores = settings.topics.scores

    def new(self) -> tuple[list[ScoreRecord], list[CaseFile]]:
        """What was written since the last call, as far as it is here."""
        records: list[ScoreRecord] = []
        cases: list[CaseFile] = []
        while messages := self._consumer.consume(BATCH, WAIT_SECONDS):
            for message in messages:
                if message.error() is not None:
                    continue
                try:
                    if message.topic() == self._scores:
                        records.append(decode_record(message.value()))
                    else:
                        cases.append(decode_case(message.value()))
                except RecordRejected as rejected:
                    log.warning("offset %s of %s: %s", message.offset(), message.topic(), rejected)
        return records, cases


@contextlib.contextmanager
def hearing(settings: Settings) -> Iterator[Hearing]:
    """Raises:
    KafkaException: the broker does not say which partitions there are.
    """
    consumer = Consumer(kafka_config.consumer(settings.kafka, GROUP) | {"log_level": 0})
    try:
        places = [
            TopicPartition(topic, partition, OFFSET_BEGINNING)
            for topic in (settings.topics.scores, settings.topics.flagged)
            for partition in consumer.list_topics(topic, timeout=CALL_SECONDS).topics[topic].partitions
        ]
        consumer.assign(places)
        yield Hearing(consumer, settings)
    finally:
        consumer.close()
