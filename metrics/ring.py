"""Sums over a sliding window, kept as one row of numbers per slice of time."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SLICES = 60
"""A window is this many slices. The slice that its beginning falls into counts whole, so a window reaches back up to
1/60 further than its length, and nothing inside it is missing."""

_ROWS = 64


@dataclass(frozen=True, slots=True)
class Window:
    """A name and a length in seconds."""

    name: str
    seconds: float

    def slice_of(self, at: float) -> int:
        """The number of the slice that time `at` (seconds since the epoch) falls into."""
        return math.floor(at * SLICES / self.seconds)

    def first_slice(self, now: float) -> int:
        """The oldest slice that is inside the window at `now`."""
        return self.slice_of(now - self.seconds)


class Ring:
    """The rows of one window: `fields` float64 sums for each of its latest slices.

    Rows are addressed in one flat array, because adding to an array item is several times faster than to a numpy
    scalar; numpy reads the same memory when sums are made.
    """

    __slots__ = ("_blank", "_fields", "_slices", "cells")

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self._blank = array("d", bytes(8 * fields))
        self.cells = array("d", bytes(8 * fields * _ROWS))
        self._slices = [-1] * _ROWS

    def row(self, number: int) -> int:
        """Where the row of slice `number` begins in `cells`; -1 where a later slice has taken its place."""
        place = number % _ROWS
        begin = place * self._fields
        held = self._slices[place]
        if held != number:
            if held > number:
                return -1
            self.cells[begin : begin + self._fields] = self._blank
            self._slices[place] = number
        return begin

    def sums(self, first: int, last: int) -> npt.NDArray[np.float64] | None:
        """Sums over slices first to last, shape (fields,); None where no row is in that span."""
        rows = [place for place, number in enumerate(self._slices) if first <= number <= last]
        if not rows:
            return None
        table = np.frombuffer(self.cells, dtype=np.float64).reshape(_ROWS, self._fields)
        sums: npt.NDArray[np.float64] = table[rows].sum(axis=0)
        return sums
