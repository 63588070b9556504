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
_GROUP = 10
_GROUPS = 8
"""Of the span before the window, slices are kept in groups of ten, for as long as a whole window more."""


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
    """The rows of one window: `fields` float64 sums for each of its latest slices, and for groups of older ones.

    Rows are addressed in one flat array, because adding to an array item is several times faster than to a numpy
    scalar; numpy reads the same memory when sums are made.
    """

    __slots__ = ("_blank", "_fields", "_groups", "_slices", "cells")

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self._blank = array("d", bytes(8 * fields))
        self.cells = array("d", bytes(8 * fields * (_ROWS + _GROUPS)))
        self._slices = [-1] * _ROWS
        self._groups = [-1] * _GROUPS

    def row(self, number: int) -> int:
        """Where the row of slice `number` begins in `cells`: its own, or that of its group where a later slice has
        taken its place; -1 where it is too old for that too."""
        place = number % _ROWS
        begin = place * self._fields
        held = self._slices[place]
        if held != number:
            if held > number:
                return self._group_row(number // _GROUP)
            if held >= 0:
                self._retire(held, begin)
            self.cells[begin : begin + self._fields] = self._blank
            self._slices[place] = number
        return begin

    def sums(self, first: int, last: int) -> npt.NDArray[np.float64] | None:
        """Sums over slices first to last, shape (fields,); None where no row is in that span."""
        return self._total([place for place, number in enumerate(self._slices) if first <= number <= last])

    def sums_before(self, first: int) -> npt.NDArray[np.float64] | None:
        """Sums over the 60 slices before slice `first` (and up to 9 more, where a group of ten begins earlier)."""
        begin = first - SLICES
        places = [place for place, number in enumerate(self._slices) if begin <= number < first]
        for place, group in enumerate(self._groups):
            if group >= 0 and begin < (group + 1) * _GROUP and group * _GROUP < first:
                places.append(_ROWS + place)
        return self._total(places)

    def rows(self, first: int, last: int, fields: int) -> tuple[list[int], npt.NDArray[np.float64]]:
        """The slices of first to last that there are, and a copy of their first `fields` sums, shape (n, fields)."""
        held = [(number, place) for place, number in enumerate(self._slices) if first <= number <= last]
        held.sort()
        table = np.frombuffer(self.cells, dtype=np.float64).reshape(_ROWS + _GROUPS, self._fields)
        return [number for number, _ in held], table[[place for _, place in held], :fields]

    def _group_row(self, group: int) -> int:
        place = group % _GROUPS
        held = self._groups[place]
        if held > group:
            return -1
        begin = (_ROWS + place) * self._fields
        if held != group:
            self.cells[begin : begin + self._fields] = self._blank
            self._groups[place] = group
        return begin

    def _retire(self, number: int, begin: int) -> None:
        """The row of a slice that has left the window goes into the row of its group."""
        into = self._group_row(number // _GROUP)
        if into >= 0:
            cells = self.cells
            for field in range(self._fields):
                cells[into + field] += cells[begin + field]

    def _total(self, places: list[int]) -> npt.NDArray[np.float64] | None:
        if not places:
            return None
        table = np.frombuffer(self.cells, dtype=np.float64).reshape(_ROWS + _GROUPS, self._fields)
        sums: npt.NDArray[np.float64] = table[places].sum(axis=0)
        return sums
