"""A record as librdkafka delivers it, with the types that hold for a record that was consumed.

The client's own stubs make every accessor optional, since one class stands for unsent messages too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError

from consumer.record import Position

Headers = Sequence[tuple[str, bytes | None]]


class Delivered(Protocol):
    """One consumed record, or an error in its place."""

    def __len__(self) -> int: ...
    def error(self) -> KafkaError | None: ...
    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...
    def timestamp(self) -> tuple[int, int]: ...


def consume(consumer: Consumer, most: int, timeout: float) -> Sequence[Delivered]:
    """Up to `most` records; waits at most `timeout` seconds."""
    return cast("Sequence[Delivered]", consumer.consume(most, timeout))


def position(record: Delivered) -> Position:
    return Position(record.topic(), record.partition(), record.offset())


def broker_time(record: Delivered) -> float | None:
    """Seconds since the epoch; None where the broker kept no time."""
    kind, milliseconds = record.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds / 1000
