"""A bounded sample of the sketches of each segment, over time, that stands for all events.

Of each slice of time the sketches with the lowest ranks are kept. A rank is exponential with rate 1 / inclusion
probability (Efraimidis and Spirakis, Information Processing Letters 97, 2006), made from a hash of the event id: so the
sample is weighted as the gauges are, is the same on every monitor, and the samples of slices can be joined.
"""

from __future__ import annotations

import binascii
import math
import sys
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from metrics.answer import ALL, Segment
from metrics.sketch import DIMENSION
from metrics.sketch_distance import Points

Part = Literal["question", "context"]
PARTS: tuple[Part, ...] = ("question", "context")

SLICES = 6
"""A window is this many slices; the one that it begins in counts whole."""
SLICE_KEPT = 64
"""Answers of one slice and segment whose sketches are kept."""
WINDOW_KEPT = 256
"""Answers of one window and segment that are compared at the most."""


REACH = 2.0 + 1.0 / SLICES
"""So many lengths of a window are kept."""
_MISSING = np.full(DIMENSION, np.nan, "<f2").tobytes()
_BYTES = len(PARTS) * len(_MISSING)
_WORD = (1 << 64) - 1
_MIX = 0x9E3779B97F4A7C15


class Span(NamedTuple):
    """A window in one segment, or in all."""

    segment: Segment
    window: str


class Sampled(NamedTuple):
    """The sketches of one part, in one segment (or all), of one window and of the span of that length before it."""

    part: Part
    segment: Segment
    window: str
    embedder: str
    recent: Points
    previous: Points


class _Slice:
    """The answers with the lowest ranks. `points`: their sketches as bytes; a part that an answer lacks is NaN."""

    __slots__ = ("embedders", "points", "ranks", "worst")

    def __init__(self) -> None:
        self.worst = math.inf
        """The highest rank kept once the slice is full: below it, all answers are here."""
        self.ranks = array("d")
        self.points = bytearray()
        self.embedders: list[str] = []

    def put(self, rank: float, points: bytes, embedder: str) -> None:
        ranks = self.ranks
        if len(ranks) < SLICE_KEPT:
            ranks.append(rank)
            self.points += points
            self.embedders.append(embedder)
        else:
            place = ranks.index(self.worst)
            ranks[place], self.embedders[place] = rank, embedder
            self.points[place * _BYTES : (place + 1) * _BYTES] = points
        if len(ranks) == SLICE_KEPT:
            self.worst = max(ranks)


class Reservoirs:
    """Samples for all segments and windows. Not thread-safe: the caller holds one lock around every call."""

    def __init__(self, windows: Mapping[str, float], segments: Sequence[Segment]) -> None:
        """`windows`: name to length in seconds."""
        self._windows = tuple(windows.items())
        self._segments = tuple(segments)
        self._slices: list[dict[tuple[Segment, int], _Slice]] = [{} for _ in self._windows]
        self._tables = tuple(zip(self._slices, windows.values(), strict=True))
        self._members: list[tuple[Segment, tuple[Segment, ...]]] = [(segment, (segment,)) for segment in segments]
        if len(segments) > 1:
            self._members.append((tuple(ALL for _ in segments[0]), self._segments))
        self._newest = -math.inf
        self.embedder = ""
        """Of the newest sketch: those of another model are not compared with them."""

    def add(
        self,
        event_id: str,
        sketch: Mapping[str, str],
        probability: float,
        embedder: str,
        segment: Segment,
        at: float,
        now: float,
    ) -> None:
        """One answer of a known segment, at time `at`. A sketch that is none is left out."""
        mixed = zlib.crc32(event_id.encode("utf-8", "surrogatepass")) * _MIX & _WORD
        rank = -probability * math.log((mixed + 1) / (_WORD + 2))
        if at >= self._newest:
            self._newest, self.embedder = at, embedder
        points: bytes | None = None
        age = now - at
        for slices, seconds in self._tables:
            if age > REACH * seconds:
                continue
            key = segment, int(at * SLICES / seconds)
            kept = slices.get(key)
            if kept is None:
                kept = slices[key] = _Slice()
            if rank < kept.worst:
                if points is None:
                    points = _decoded(sketch)
                    # Thousands are kept of the same few names.
                    embedder = sys.intern(embedder)
                kept.put(rank, points, embedder)

    def spans(self) -> list[Span]:
        """All that `read` can tell of."""
        return [Span(segment, window) for window, _ in self._windows for segment, _ in self._members]

    def read(self, now: float, wanted: Collection[Span]) -> Iterator[Sampled]:
        """What is there at `now` in the wanted spans, per part; forgets what is too old for the window before.

        Each takes up to 128 kB, and all of them together would be most of a monitor's memory."""
        for slices, (window, seconds) in zip(self._slices, self._windows, strict=True):
            first = math.floor((now - seconds) * SLICES / seconds)
            for key in [key for key in slices if key[1] < first - SLICES]:
                del slices[key]
            recent: dict[Segment, list[_Slice]] = {}
            previous: dict[Segment, list[_Slice]] = {}
            for (segment, number), kept in slices.items():
                (recent if number >= first else previous).setdefault(segment, []).append(kept)
            for segment, of in self._members:
                if (segment, window) not in wanted:
                    continue
                now_points, then_points = (
                    self._lowest([kept for each in of for kept in found.get(each, ())]) for found in (recent, previous)
                )
                for place, part in enumerate(PARTS):
                    points = _there(now_points[:, place]), _there(then_points[:, place])
                    yield Sampled(part, segment, window, self.embedder, *points)

    def _lowest(self, slices: Sequence[_Slice]) -> Points:
        """The answers with the lowest ranks of several slices: a sample of all that the slices stand for, as far up as
        every one of them is complete. Shape (n, 2, 32)."""
        if not slices:
            return np.empty((0, len(PARTS), DIMENSION), np.float32)
        complete = min(kept.worst for kept in slices)
        ranks = np.array([rank for kept in slices for rank in kept.ranks])
        own = np.array([name == self.embedder for kept in slices for name in kept.embedders])
        raw = b"".join(bytes(kept.points) for kept in slices)
        points = np.frombuffer(raw, "<f2").reshape(-1, len(PARTS), DIMENSION)
        chosen = np.flatnonzero((ranks <= complete) & own)
        return points[chosen[np.argsort(ranks[chosen])[:WINDOW_KEPT]]].astype(np.float32)


def _decoded(sketch: Mapping[str, str]) -> bytes:
    return b"".join(_part(sketch.get(part)) for part in PARTS)


def _part(encoded: object) -> bytes:
    """The bytes of one sketch; NaN where it is none."""
    if isinstance(encoded, str):
        try:
            raw = binascii.a2b_base64(encoded, strict_mode=True)
        except ValueError:
            return _MISSING
        if len(raw) == len(_MISSING):
            return raw
    return _MISSING


def _there(points: Points) -> Points:
    """Without those that an answer lacks, or that are not finite."""
    return points[np.isfinite(points).all(axis=1)]
