"""Is the score log being read? Asked of the broker itself, beside the client that reads it.

A client whose background task has died reads nothing and raises nothing (field case 10), and one may go on reading and
no longer commit (field case 6). A process that finds itself so is better started anew. An idle topic, or a broker that
does not answer, is never a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

CALL_SECONDS = 2.5


@dataclass(frozen=True, slots=True)
class Offsets:
    """By partition: the end of the log, and the group's committed offset (absent where there is none)."""

    ends: Mapping[int, int]
    committed: Mapping[int, int]


def ask_offsets(consumer: Consumer, topic: str, partitions: Sequence[int]) -> Offsets:
    """Ask the broker; blocks for at most some seconds. The consumer has the group's id, but is no member of it.

    (An AdminClient would tell the same, but librdkafka 2.16 ends the process on a failed assertion when an admin
    request for offsets is under way while its broker goes away.)

    Raises:
        KafkaException: no answer, or not allowed.
    """
    own = [TopicPartition(topic, p) for p in partitions]
    ends = {tp.partition: consumer.get_watermark_offsets(tp, CALL_SECONDS)[1] for tp in own}
    committed = {tp.partition: tp.offset for tp in consumer.committed(own, CALL_SECONDS) if tp.offset >= 0}
    return Offsets(ends, committed)


@dataclass(slots=True)
class _Mark:
    """How far something had come when it last moved, and where the log ended then."""

    at: float
    value: int
    end: int


class Watch:
    """Verdicts from successive answers. Times are those of the clock that the caller passes in."""

    def __init__(self, limit_seconds: float, waiting_seconds: float) -> None:
        """`limit_seconds`: how long our own reading or committing may stand still while there is work; while another
        member owns the log, it may take `waiting_seconds` (it may be reading back)."""
        self._limit = limit_seconds
        self._waiting = waiting_seconds
        self._marks: dict[tuple[str, int], _Mark] = {}

    def forget(self) -> None:
        """The broker did not answer, or the assignment changed: begin anew."""
        self._marks.clear()

    def verdict(self, now: float, offsets: Offsets, positions: Mapping[int, int] | None) -> str | None:
        """Why this process should end, or None. `positions`: the next offset by owned partition; None: a standby."""
        for partition, end in offsets.ends.items():
            committed = offsets.committed.get(partition, 0)
            if positions is None:
                if self._stands_still("group", partition, now, committed, end) > self._waiting:
                    return f"nobody reads partition {partition} of the score topic: {end - committed} records wait"
                continue
            position = positions.get(partition)
            if position is None:
                continue
            if self._stands_still("position", partition, now, position, end) > self._limit:
                return f"partition {partition} of the score topic is no longer read: {end - position} records wait"
            if self._stands_still("committed", partition, now, committed, position) > self._limit:
                return f"partition {partition} of the score topic is read, but no longer committed"
        return None

    def _stands_still(self, what: str, partition: int, now: float, value: int, end: int) -> float:
        """Seconds since `value` moved, where records came after that; 0 where it moves or has nothing to do."""
        mark = self._marks.get((what, partition))
        if mark is None or mark.value != value or value >= end:
            self._marks[what, partition] = _Mark(now, value, end)
            return 0.0
        # Offsets may be used up by marks that no reader ever sees; only records that came later are work.
        if end <= mark.end:
            mark.at = now
            return 0.0
        return now - mark.at
