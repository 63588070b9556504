"""How many events could not be read lately, as the offsets of the dead-letter topic tell; no record is read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.deadletter_reading import READER_GROUP
from consumer.logs import one_line
from consumer.settings import Settings

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
KEPT_SECONDS = 30.0
HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Counted:
    """Dead letters of the last hour and of the last day (as finely as the broker tells), or why they are not known."""

    hour: int = 0
    day: int = 0
    fault: str = ""


class DeadLetters:
    """Asks the broker at most every `KEPT_SECONDS`; whoever comes meanwhile gets what was known last."""

    def __init__(self, settings: Settings, now: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._monotonic = monotonic
        self._asking = threading.Lock()
        self._known = Counted(fault="not asked yet")
        self._asked: float | None = None

    def counted(self) -> Counted:
        """Takes up to some seconds where the broker does not answer."""
        fresh = self._asked is not None and self._monotonic() - self._asked < KEPT_SECONDS
        if not fresh and self._asking.acquire(blocking=self._asked is None):
            try:
                self._known, self._asked = self._ask(), self._monotonic()
            finally:
                self._asking.release()
        return self._known

    def _ask(self) -> Counted:
        topic = self._settings.topics.deadletter
        try:
            with _reader(self._settings) as reader:
                known = reader.list_topics(topic, ANSWER_SECONDS).topics[topic]
                if known.error is not None:
                    return Counted(fault=f"{topic}: {known.error.str()}")
                ends = {
                    p: reader.get_watermark_offsets(TopicPartition(topic, p), ANSWER_SECONDS) for p in known.partitions
                }
                hour, day = (self._since(reader, topic, ends, seconds) for seconds in (HOUR, DAY))
                return Counted(hour, day)
        except (KafkaException, kafka_config.KafkaConfigError) as error:
            return Counted(fault=one_line(str(error.args[0])))

    def _since(self, reader: Consumer, topic: str, ends: dict[int, tuple[int, int]], seconds: float) -> int:
        at = int((self._now() - seconds) * 1000)
        found = reader.offsets_for_times([TopicPartition(topic, p, at) for p in ends], ANSWER_SECONDS)
        number = 0
        for place in found:
            low, high = ends[place.partition]
            number += high - max(place.offset, low) if place.offset >= 0 else 0
        return number


@contextmanager
def _reader(settings: Settings) -> Iterator[Consumer]:
    reader = Consumer(kafka_config.consumer(settings.kafka, READER_GROUP) | {"log_level": 0}, logger=log)
    try:
        yield reader
    finally:
        reader.close()
