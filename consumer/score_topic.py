"""Score records of two spans of time, read back from the score log. No group is joined and nothing is committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.logs import one_line
from consumer.rebuild import CLOCK_SLACK_SECONDS, STEP_BACK
from consumer.record import CountedRecord, RecordRejected, decode_counted
from consumer.settings import Settings

log = logging.getLogger(__name__)

CALL_SECONDS = 10.0
QUIET_SECONDS = 15.0
BATCH = 500
LATE_SECONDS = 3600.0
"""A score that was appended so long after its event is not looked for."""


class ScoreTopicError(Exception):
    """The topic cannot be read; one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Range:
    """Event times from `begin` (inclusive) to `end` (exclusive), in seconds since the epoch."""

    begin: float
    end: float

    def holds(self, at: float) -> bool:
        return self.begin <= at < self.end


@dataclass(frozen=True, slots=True)
class Logged:
    """A record, and when it happened as the monitor counts it: its event time, or when it was appended, if that was
    earlier."""

    record: CountedRecord
    at: float


class ScoreTopic:
    """The topic of score records, read anew by every call, as it is at that moment."""

    def __init__(self, settings: Settings, group: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        """`group` is only a name that the broker must allow."""
        self._topic = settings.topics.scores
        self._servers = settings.kafka.bootstrap_servers
        self._monotonic = monotonic
        self._config = kafka_config.consumer(settings.kafka, group) | {
            "log_level": 0,
            # The default would keep more records in memory than the monitor has room for.
            "queued.max.messages.kbytes": 4096,
            "fetch.message.max.bytes": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        }

    def read(
        self, before: Range, after: Range, most: int | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Logged]:
        """Records of both ranges, and others near them; of `before` about the last `most` offsets, of `after` about the
        first. What cannot be decoded is left out. Ends early where `stopped`.

        Raises:
            ScoreTopicError: the topic is missing, forbidden, or the broker does not answer.
        """
        consumer = Consumer(self._config)
        try:
            for partition, pieces in self._pieces(consumer, before, after, most).items():
                for begin, end in pieces:
                    yield from self._piece(consumer, partition, begin, end, stopped)
        except KafkaException as error:
            raise ScoreTopicError(
                one_line(f"the topic {self._topic} at {self._servers} cannot be read: {error.args[0].str()}")
            ) from None
        finally:
            consumer.close()

    def _pieces(
        self, consumer: Consumer, before: Range, after: Range, most: int | None
    ) -> dict[int, list[tuple[int, int]]]:
        topic = consumer.list_topics(self._topic, timeout=CALL_SECONDS).topics[self._topic]
        if topic.error is not None:
            raise ScoreTopicError(f"the topic {self._topic}: {topic.error.str()}; run `groundwatch topics create`")
        found = {}
        for partition in topic.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=CALL_SECONDS)

            def offset(at: float, step: int, partition: int = partition, low: int = low, high: int = high) -> int:
                asked = TopicPartition(self._topic, partition, max(int(at * 1000), 0))
                answer = consumer.offsets_for_times([asked], timeout=CALL_SECONDS)[0].offset
                return min(max((high if answer < 0 else answer) + step, low), high)

            pieces = []
            for each in (before, after):
                begin = offset(each.begin - CLOCK_SLACK_SECONDS, -STEP_BACK)
                end = offset(each.end + LATE_SECONDS, STEP_BACK)
                if most is not None and each is before:
                    begin = max(begin, offset(each.end, 0) - most)
                elif most is not None:
                    end = min(end, offset(each.begin, 0) + most)
                pieces.append((begin, end))
            found[partition] = _disjoint(pieces)
        return found

    def _piece(
        self, consumer: Consumer, partition: int, begin: int, end: int, stopped: Callable[[], bool]
    ) -> Iterator[Logged]:
        consumer.assign([TopicPartition(self._topic, partition, begin)])
        heard = self._monotonic()
        position = begin
        while position < end and not stopped():
            for message in consumer.consume(BATCH, 0.5):
                error = message.error()
                if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # no group is used: assigned by hand
                if error is not None:
                    raise KafkaException(error)
                heard = self._monotonic()
                if (message.offset() or 0) < end:
                    try:
                        record = decode_counted(message.value())
                    except RecordRejected as rejected:
                        log.debug("offset %s of %s is no score record: %s", message.offset(), self._topic, rejected)
                        continue
                    kind, milliseconds = message.timestamp()
                    appended = milliseconds / 1000.0 if kind and milliseconds > 0 else record.event_time
                    yield Logged(record, min(record.event_time, appended))
            # A position says more than the last record: marks of transactions have offsets of their own.
            position = max(position, consumer.position([TopicPartition(self._topic, partition)])[0].offset)
            if position < end and self._monotonic() - heard > QUIET_SECONDS:
                raise ScoreTopicError(f"the broker at {self._servers} sends nothing more of {self._topic}; try again")


def _disjoint(pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets, each once.

    >>> _disjoint([(5, 9), (0, 6), (9, 9)])
    [(0, 9)]
    """
    found: list[tuple[int, int]] = []
    for begin, end in sorted(pieces):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found
