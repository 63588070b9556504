"""Which offset may be committed: the lowest delivered offset that is not finished, per partition.

*Delivered* offsets are tracked, not arithmetic neighbours: a hole (compaction, transactions) is never waited for. Work
carries its `Watermark`; when a partition is revoked or lost its watermark is dropped, and a result that arrives later
finishes into an object that nobody reads any more, so it can never commit for a partition that is not owned.

All calls come from the poll thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

Partition = tuple[str, int]
"""(topic, partition)"""


class Watermark:
    """One partition's progress.

    >>> w = Watermark()
    >>> for offset in (1, 2, 4): w.deliver(offset)
    >>> w.pass_over(5); w.finish(2); w.finish(4); w.committable
    1
    >>> w.finish(1); w.committable
    6
    """

    __slots__ = ("_finished", "_open", "_waiting", "committed", "highest")

    def __init__(self) -> None:
        self.highest = -1
        """The highest offset delivered so far; -1 before the first."""
        self.committed = -1
        """What was last handed to a commit; -1 before the first."""
        self._waiting: deque[int] = deque()
        self._open: set[int] = set()
        self._finished: set[int] = set()

    def deliver(self, offset: int) -> None:
        """An event at `offset` is in flight."""
        self.highest = offset
        self._waiting.append(offset)
        self._open.add(offset)

    def pass_over(self, offset: int) -> None:
        """An event at `offset` was finished on delivery (sampled out, tombstone)."""
        self.highest = offset

    def finish(self, offset: int) -> None:
        """The event's outputs are acknowledged. An unknown or repeated offset is nothing."""
        if offset in self._open:
            self._open.discard(offset)
            self._finished.add(offset)
            while self._waiting and self._waiting[0] in self._finished:
                self._finished.discard(self._waiting.popleft())

    @property
    def committable(self) -> int:
        """The next offset to read after a restart; -1 while nothing was delivered."""
        if self._waiting:
            return self._waiting[0]
        return self.highest + 1 if self.highest >= 0 else -1

    @property
    def in_flight(self) -> int:
        return len(self._open)


class Offsets:
    """The watermarks of the partitions that are owned now."""

    def __init__(self) -> None:
        self._owned: dict[Partition, Watermark] = {}

    def assign(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._owned[partition] = Watermark()

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Revoked or lost: nothing is committed for them any more."""
        for partition in partitions:
            self._owned.pop(partition, None)

    def get(self, partition: Partition) -> Watermark | None:
        """None for a partition that is not owned: its events are not ours to count."""
        return self._owned.get(partition)

    def items(self) -> Iterator[tuple[Partition, Watermark]]:
        yield from list(self._owned.items())

    def in_flight(self, partitions: Iterable[Partition] | None = None) -> int:
        """Events in flight, of all owned partitions or of those named."""
        chosen = self._owned if partitions is None else [p for p in partitions if p in self._owned]
        return sum(self._owned[p].in_flight for p in chosen)

    def to_commit(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """Offsets that moved since they were last handed out by `committed`."""
        chosen = list(self._owned) if partitions is None else [p for p in partitions if p in self._owned]
        return {p: self._owned[p].committable for p in chosen if self._owned[p].committable > self._owned[p].committed}

    def committed(self, offsets: dict[Partition, int]) -> None:
        """The broker has taken these; a failed commit is simply tried again with the next."""
        for partition, offset in offsets.items():
            watermark = self._owned.get(partition)
            if watermark is not None:
                watermark.committed = max(watermark.committed, offset)
