"""Reading a topic once, from a time to its present end, and what a dead letter says about itself.

A plain consumer without a group's offsets: whoever looks moves nothing, and sees the same again the next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.deadletters import DETAIL, REASON, attempts, noted_position, original_time, producers_headers
from consumer.delivered import Delivered, broker_time, consume, position
from consumer.interrupts import Interrupts
from consumer.logs import one_line
from consumer.record import Position
from consumer.settings import Settings
from consumer.topics import explain

READER_GROUP = "groundwatch-reader"
"""The client insists on a name; the group is never joined and nothing is committed under it."""
BATCH = 500
STEP_BACK = 10_000
"""Offsets read before the one that a broker names for a time: some answer no finer than a batch. What is older is left
out by its own time."""


class Unreadable(Exception):
    """The topic cannot be read; one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `original` is None for a record that the scorer did not write; `value` None: headers only.

    `time` is when it became one, `logged` when the record was first logged; seconds since the epoch.
    """

    at: Position
    time: float
    reason: str
    detail: str
    original: Position | None
    logged: float | None
    attempts: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def read_letter(record: Delivered) -> Letter:
    """What a record of the dead-letter topic says. Never raises: a stranger's record has an empty reason."""
    headers = record.headers() or ()
    found = dict(headers)
    return Letter(
        at=position(record),
        time=broker_time(record) or 0.0,
        reason=_text(found.get(REASON)),
        detail=_text(found.get(DETAIL)),
        original=noted_position(headers) if found.get(REASON) else None,
        logged=original_time(None, headers),
        attempts=attempts(headers),
        key=record.key(),
        value=record.value(),
        headers=producers_headers(headers),
    )


class Repeats:
    """Tells a letter that was written twice: a scorer that is killed before its commit writes what it wrote again."""

    def __init__(self) -> None:
        self._seen: set[tuple[Position, int, str, bool]] = set()

    def again(self, letter: Letter) -> bool:
        """Whether the letter was asked about before: the same record of the same attempt, for the same reason. A
        stranger's record never was, nor is one without payload the same as one with it."""
        if letter.original is None:
            return False
        known = len(self._seen)
        self._seen.add((letter.original, letter.attempts, letter.reason, letter.value is None))
        return len(self._seen) == known


class TopicReader:
    """Reads topics to the end that they have when the reading begins. Use it as a context manager."""

    def __init__(
        self, settings: Settings, timeout: float, interrupts: Interrupts, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`timeout`, in seconds: for one answer of the broker, and for a silence while there is more to read.

        Raises:
            Unreadable: the `[kafka]` section cannot be used.
        """
        self._servers = settings.kafka.bootstrap_servers
        self._timeout = timeout
        self._interrupts = interrupts
        self._now = now
        self._heard: list[KafkaError] = []
        try:
            self._consumer = Consumer(
                kafka_config.consumer(settings.kafka, READER_GROUP)
                | {"enable.partition.eof": True, "log_level": 0, "error_cb": self._hear}
            )
        except (KafkaException, kafka_config.KafkaConfigError) as error:
            raise Unreadable(one_line(f"[kafka]: {error.args[0]}")) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def records(self, topic: str, since: float | None = None) -> Iterator[Delivered]:
        """Every record that is on `topic` now. With `since` (seconds since the epoch) older ones are passed over, as
        far as the broker can tell them apart: look at the time of each.

        Raises:
            Unreadable: the broker is away or stops answering, or there is no such topic, or it may not be read.
        """
        with self._explained():
            spans = self._spans(topic, since)
            self._consumer.assign([TopicPartition(topic, p, begin) for p, (begin, _) in spans.items()])
        open_ = {p: end for p, (_, end) in spans.items()}
        heard = self._now()
        while open_:
            with self._explained():
                records = consume(self._consumer, BATCH, 0.2)
            if records:
                heard = self._now()
            elif self._now() - heard > self._timeout:
                raise Unreadable(explain(KafkaError(KafkaError._TIMED_OUT), self._heard, self._servers))
            for record in records:
                partition, error = record.partition(), record.error()
                if partition not in open_:
                    continue
                if error is None:
                    if record.offset() < open_[partition]:
                        yield record
                    if record.offset() + 1 >= open_[partition]:
                        del open_[partition]
                elif error.code() == KafkaError._PARTITION_EOF:
                    del open_[partition]  # offsets up to the end do not exist: transaction marks
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # no group is used: assigned by hand
                    raise Unreadable(one_line(f"{topic} cannot be read: {error.str()}"))
        self._consumer.unassign()

    def _spans(self, topic: str, since: float | None) -> dict[int, tuple[int, int]]:
        """[begin, end) of each partition that holds anything."""
        there = self._consumer.list_topics(timeout=self._timeout).topics
        if topic not in there:
            raise Unreadable(f"there is no topic {topic} at {self._servers}; run: groundwatch topics create")
        spans = {}
        for partition in there[topic].partitions:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), self._timeout)
            begin = low
            if since is not None:
                asked = TopicPartition(topic, partition, int(since * 1000))
                found = self._consumer.offsets_for_times([asked], self._timeout)[0].offset
                begin = max(low, (found if found >= 0 else high) - STEP_BACK)
            if begin < high:
                spans[partition] = (begin, high)
        return spans

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Around calls of the client: its failures become one line for a person."""
        try:
            with self._interrupts.held():
                yield
        except KafkaException as error:
            self._consumer.poll(0)
            raise Unreadable(explain(error.args[0], self._heard, self._servers)) from None

    def _hear(self, error: KafkaError) -> None:
        self._heard = [*self._heard[-20:], error]


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")
