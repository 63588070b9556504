"""Text of an event on a terminal, measured in its columns; inert, see `consumer.inert_text`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import get_character_cell_size as cells

from consumer.inert_text import inert


def wrapped(line: str, width: int) -> list[str]:
    """`line` in pieces of at most `width` terminal columns; broken at blanks where there are any."""
    pieces = list(_wrapped(line, max(width, 10)))
    return pieces or [""]


def _wrapped(line: str, width: int) -> Iterator[str]:
    start = used = 0
    blank = -1
    for at, character in enumerate(line):
        size = cells(character)
        if used + size > width:
            end = blank + 1 if blank >= start else at
            yield line[start:end].rstrip()
            start, blank = end, -1
            used = sum(map(cells, line[start:at]))
        if character == " ":
            blank = at
        used += size
    if line[start:]:
        yield line[start:].rstrip()


def shortened(text: str, width: int) -> str:
    """`text` inert, in at most `width` columns, an ellipsis in place of what was cut off."""
    line = inert(text)
    if sum(map(cells, line)) <= width:
        return line
    used, at = 0, 0
    while at < len(line) and used + cells(line[at]) < width:
        used += cells(line[at])
        at += 1
    return line[:at].rstrip() + "…"
