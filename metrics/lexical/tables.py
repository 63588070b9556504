"""Tables of a text: a bare number of a row has the unit that its column's header names, «Price (EUR)»."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from metrics.lexical.quantities import UNITS, Quantity
from metrics.lexical.words import any_of

_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_UNIT = rf"(?P<unit>{any_of(UNITS)})"
_IN_HEADER = re.compile(rf"(?:[(（\[]\s*{_UNIT}\s*[)）\]]|(?:,|/|\bin)\s*{_UNIT.replace('unit', 'other')})\s*$")
_BEFORE = re.compile(rf"[(（\[]\s*{_UNIT}\s*[)）\]]\s*[:：]\s*$")
REACH = 40
"""Characters before a number in which a header is looked for: «Price (EUR): 30»."""


@dataclass(frozen=True, slots=True)
class Table:
    """The header `text[start:end]` of a table, with the unit of each of its columns, "" where none is named."""

    start: int
    end: int
    separator: str
    units: tuple[str, ...]

    def unit_at(self, line: str, at: int) -> str:
        """The unit of the column that character `at` of a row stands in."""
        column = line.count(self.separator, len(line) - len(line.lstrip("| ")), at)
        return self.units[column] if column < len(self.units) else ""


def tables(folded: str, lines: Sequence[tuple[int, int]]) -> dict[int, Table]:
    """For every line that is a row of a table its header's, by the character that the row begins at.

    Markdown tables; and lines with equally many tabs, of which the first one has no figure.
    """
    found: dict[int, Table] = {}
    header: Table | None = None
    for k, (start, end) in enumerate(lines):
        line = folded[start:end]
        if (
            header
            and header.separator in line
            and not (header.separator == "\t" and line.count("\t") + 1 != len(header.units))
        ):
            if not _RULE.fullmatch(line):
                found[start] = header
            continue
        header = None
        following = folded[slice(*lines[k + 1])] if k + 1 < len(lines) else ""
        if "|" in line and "|" in following and _RULE.fullmatch(following):
            header = _table(line, start, end, "|")
        elif "\t" in line and line.count("\t") == following.count("\t") and not any(c.isdigit() for c in line):
            header = _table(line, start, end, "\t")
    return found


def _table(line: str, start: int, end: int, separator: str) -> Table:
    cells = line.strip("| \n").split(separator)
    return Table(start, end, separator, tuple(_unit(cell) for cell in cells))


def _unit(cell: str) -> str:
    match = _IN_HEADER.search(cell.strip())
    return (match["unit"] or match["other"]) if match else ""


def with_units(line: str, numbers: Sequence[Quantity], table: Table | None) -> Iterator[Quantity]:
    """The quantities of a row, or of a sentence that names a header before the number, with that header's unit.

    >>> [q.value for q in with_units("weight (kg): 5", [Quantity(5.0, "", 13, 14, figure=5.0)], None)]
    [5000.0]
    """
    for quantity in numbers:
        unit = ""
        if quantity.unit == "" and quantity.figure is not None:
            if table:
                unit = table.unit_at(line, quantity.start)
            elif match := _BEFORE.search(line, max(quantity.start - REACH, 0), quantity.start):
                unit = match["unit"]
        if unit:
            base, factor = UNITS[unit]
            yield replace(quantity, unit=base, value=quantity.value * factor)
        else:
            yield quantity
