"""Which metrics had no value lately, and why: answers by reason, in slots of time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from metrics.answer import Missing, Segment
from metrics.outcome import Kind, Reason
from metrics.rolling import METRIC_NAME

SLOT_SECONDS = 300.0
SLOTS = 288
"""A day."""
MOST_KEYS = 2000
"""Combinations of segment, metric and reason that are counted; one more than these is left out."""
_KINDS = {reason.value: reason.kind for reason in Reason}


@dataclass(frozen=True, slots=True)
class Missed:
    """So many answers of `segment` had no value of `metric`, for `reason`. A reason that this version does not know
    counts as a failure, as everywhere."""

    segment: Segment
    metric: str
    reason: str
    number: int

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self.reason, Kind.FAILED)


class UnscoredSeen:
    """Counts of the last day. Not thread-safe: the caller holds one lock around every call."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Segment, str, str], array[int]] = {}
        self._slots: dict[tuple[Segment, str, str], int] = {}

    def note(self, segment: Segment, at: float, unscored: Mapping[str, Missing]) -> None:
        """An answer at time `at` (seconds) without a value for these metrics."""
        if not unscored:
            return
        slot = int(at // SLOT_SECONDS)
        for metric, missing in unscored.items():
            key = (segment, metric, missing.reason)
            counts = self._counts.get(key)
            if counts is None:
                if len(self._counts) >= MOST_KEYS or not METRIC_NAME.fullmatch(metric):
                    continue
                if not METRIC_NAME.fullmatch(missing.reason):
                    continue
                counts = self._counts[key] = array("I", bytes(4 * SLOTS))
                self._slots[key] = slot
            newest = self._slots[key]
            if slot > newest:
                for passed in range(newest + 1, min(slot, newest + SLOTS) + 1):
                    counts[passed % SLOTS] = 0
                self._slots[key] = slot
            elif slot <= newest - SLOTS:
                continue
            counts[slot % SLOTS] += 1

    def read(self, now: float, seconds: float) -> list[Missed]:
        """Those of the last `seconds` (a day at most), reaching back up to a slot further; most frequent first."""
        last = int(now // SLOT_SECONDS)
        first = max(int((now - seconds) // SLOT_SECONDS), last - SLOTS + 1)
        found = []
        for (segment, metric, reason), counts in self._counts.items():
            newest = self._slots[segment, metric, reason]
            number = sum(counts[slot % SLOTS] for slot in range(max(first, newest - SLOTS + 1), newest + 1))
            if number:
                found.append(Missed(segment, metric, reason, number))
        return sorted(found, key=lambda missed: -missed.number)
