"""How far each partition of the score log has been counted, and what a delivery means for that.

Offsets are committed from here, not from the client's own acknowledgements: those take a missing offset for a done one,
or stop committing at it (field case 4). And after a rebalance a record may be delivered far ahead of the committed
offset, while those between never come (field case 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum


class Delivery(Enum):
    IN_ORDER = "in order"
    """Count it, but for what was counted before (`counted_before`)."""
    AHEAD = "ahead"
    """Something is missing before it: seek back to `next`, and leave it."""
    IN_FLIGHT = "in flight"
    """Fetched before the seek took effect: leave it, it comes again."""


class Positions:
    """By partition, the next offset to count. Not thread-safe for writers; `next` may be read from anywhere."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._again: dict[int, int] = {}
        self._holes: dict[int, int] = {}

    def forget(self) -> None:
        for known in (self.next, self._committed, self._again, self._holes):
            known.clear()

    def begin(self, offsets: Mapping[int, int | None]) -> None:
        """Counting begins at the committed offsets; None: wherever the first record is."""
        self.forget()
        self.next.update({p: offset for p, offset in offsets.items() if offset is not None})
        self._committed.update(self.next)

    def resume(self, committed: Mapping[int, int | None]) -> None:
        """The same partitions are back: they are delivered from the committed offsets, which are not beyond ours."""
        self._holes.clear()
        self._again = dict(self.next)
        self._committed = {p: offset for p, offset in committed.items() if offset is not None}

    def judge(self, partition: int, first: int) -> Delivery:
        """What to do with a delivery that begins at offset `first`.

        A hole is first taken for an omission of the client. Where what follows it is delivered again after the seek,
        the offsets in between do not exist (transaction marks, compaction, retention).
        """
        expected = self.next.get(partition)
        if expected is None or first <= expected:
            self._holes.pop(partition, None)
            return Delivery.IN_ORDER
        hole = self._holes.get(partition)
        if hole is None:
            self._holes[partition] = first
            return Delivery.AHEAD
        if first > hole:
            return Delivery.IN_FLIGHT
        del self._holes[partition]
        return Delivery.IN_ORDER

    def counted_before(self, partition: int, offset: int) -> bool:
        """True for a record that comes again after `resume` or a seek, and was counted already."""
        bound = self._again.get(partition)
        if bound is None:
            return False
        if offset < bound:
            return True
        del self._again[partition]
        return False

    def counted(self, partition: int, offset: int) -> None:
        self.next[partition] = offset + 1

    def uncommitted(self, partitions: Sequence[int]) -> dict[int, int]:
        """What may be committed of these partitions: everything below is counted."""
        return {p: self.next[p] for p in partitions if p in self.next and self.next[p] != self._committed.get(p)}

    def committed(self, offsets: Mapping[int, int]) -> None:
        self._committed.update(offsets)

    def cover(self, partitions: Iterable[int]) -> bool:
        """True where exactly these partitions are known."""
        return set(self.next) == set(partitions)
