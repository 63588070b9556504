"""Which event ids were seen lately, in bounded memory: duplicates must not move a gauge.

Ids are kept as 64-bit hashes in open-addressed tables (16 bytes a slot), because a dict would take ten times as much.
A false match needs two of a few million ids to share 64 bits: about one in a million over the life of a monitor.
"""

from __future__ import annotations

import math
from array import array
from enum import Enum

MAX_SLOTS = 1 << 19
"""Slots of one generation at most (8 MiB). The latest 327,000 ids are always held, and up to twice as many; where more
come within the horizon, ids are kept for a shorter time than configured."""

_FIRST_SLOTS = 1 << 12
_WORD = (1 << 64) - 1


class Seen(Enum):
    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    """The same id with another content: not a duplicate."""


class _Table:
    """64-bit key (never 0) to 64-bit value, linear probing, at most 5/8 full."""

    __slots__ = ("_keys", "_mask", "_used", "_values")

    def __init__(self, slots: int = _FIRST_SLOTS) -> None:
        self._keys = array("Q", bytes(8 * slots))
        self._values = array("Q", bytes(8 * slots))
        self._mask = slots - 1
        self._used = 0

    def get(self, key: int) -> int | None:
        keys, mask = self._keys, self._mask
        slot = key & mask
        while found := keys[slot]:
            if found == key:
                return self._values[slot]
            slot = (slot + 1) & mask
        return None

    def put(self, key: int, value: int) -> None:
        """Insert or overwrite; the table doubles when it fills, up to MAX_SLOTS."""
        if self._used * 8 >= len(self._keys) * 5:
            self._double()
        keys, mask = self._keys, self._mask
        slot = key & mask
        while found := keys[slot]:
            if found == key:
                break
            slot = (slot + 1) & mask
        else:
            keys[slot] = key
            self._used += 1
        self._values[slot] = value

    @property
    def full(self) -> bool:
        return self._used * 8 >= MAX_SLOTS * 5

    def _double(self) -> None:
        larger = _Table(2 * len(self._keys))
        for slot, key in enumerate(self._keys):
            if key:
                larger.put(key, self._values[slot])
        self._keys, self._values, self._mask = larger._keys, larger._values, larger._mask


class Dedup:
    """Ids seen within `horizon_seconds`, measured in the time of the log, so that a replay decides as the first read.

    Two generations: the older one is dropped when the younger is as old as the horizon, or full.
    """

    def __init__(self, horizon_seconds: float) -> None:
        self._horizon = horizon_seconds
        self._young = _Table()
        self._old = _Table()
        self._began: float | None = None
        self._earliest = math.inf

    def see(self, event_id: str, content_hash: str, at: float) -> Seen:
        """Remember the event, read at log time `at` (seconds since the epoch), and say whether it is new."""
        if self._began is None:
            self._began = self._earliest = at
        elif at - self._began >= self._horizon or self._young.full:
            self._old, self._young, self._began = self._young, _Table(), at
        key = hash(event_id) & _WORD or 1
        content = hash(content_hash) & 0xFFFFFFFF
        entry = content << 32 | int(at) & 0xFFFFFFFF
        known = self._find(key, at)
        if known is None:
            self._young.put(key, entry)
            return Seen.NEW
        if known == content:
            return Seen.DUPLICATE
        # The id is taken by another content: each further content gets an entry of its own, so that redelivery of
        # both is still recognised.
        pair = hash((event_id, content_hash)) & _WORD or 1
        if self._find(pair, at) is not None:
            return Seen.DUPLICATE
        self._young.put(pair, entry)
        return Seen.CONFLICT

    def knows(self, event_id: str, content_hash: str, at: float) -> bool:
        """True where exactly this event is remembered; remembers nothing."""
        if at < self._earliest - self._horizon - 1.0:
            return False
        content = hash(content_hash) & 0xFFFFFFFF
        if self._find(hash(event_id) & _WORD or 1, at) == content:
            return True
        return self._find(hash((event_id, content_hash)) & _WORD or 1, at) is not None

    def _find(self, key: int, at: float) -> int | None:
        """The content part of the entry, where it was seen within the horizon of `at` (before or after it)."""
        for table in (self._young, self._old):
            entry = table.get(key)
            if entry is not None and abs(at - (entry & 0xFFFFFFFF)) <= self._horizon + 1.0:
                return entry >> 32
        return None
