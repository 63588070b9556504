"""Which parts of a huge text are left out where a case is printed: the middle of long stretches with nothing wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from consumer.case_file import CaseStatement

LONG = 8000
"""Characters up to which a text is shown whole."""
KEPT = 400
"""Characters at either end of a stretch that is shortened."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """So many characters are not shown."""

    characters: int


Piece = tuple[str, int | None]
"""A piece of an answer, and the number (from 0) of the statement that it is."""


def is_plain(statement: CaseStatement) -> bool:
    """Supported, and no passage says otherwise: nobody has to read it to see what is wrong."""
    return statement.label == "supported" and not statement.conflict


def without_long_stretches(pieces: Sequence[Piece], statements: Sequence[CaseStatement]) -> Iterator[Piece | LeftOut]:
    """The pieces of an answer; of a long answer without the middle of what holds no wrong statement."""
    if sum(len(text) for text, _ in pieces) <= LONG:
        yield from pieces
        return
    stretch: list[Piece] = []
    for piece in pieces:
        if piece[1] is None or is_plain(statements[piece[1]]):
            stretch.append(piece)
            continue
        yield from _ends(stretch)
        yield piece
        stretch = []
    yield from _ends(stretch)


def middle_left_out(text: str) -> Iterator[str | LeftOut]:
    """The text; without its middle where it is long."""
    for part in _ends([(text, None)]) if len(text) > LONG else ((text, None),):
        yield part if isinstance(part, LeftOut) else part[0]


def _ends(stretch: list[Piece]) -> Iterator[Piece | LeftOut]:
    """The first and the last `KEPT` characters; all of it where little more would be left out than is shown."""
    low, high = KEPT, sum(len(text) for text, _ in stretch) - KEPT
    if high - low <= KEPT:
        yield from stretch
        return
    begin = 0
    for text, at in stretch:
        end = begin + len(text)
        if begin < low:
            yield text[: low - begin], at
        if begin < low <= end:
            yield LeftOut(high - low)
        if end > high:
            yield text[max(0, high - begin) :], at
        begin = end


def statements_shown(ordered: Iterable[tuple[int, CaseStatement]]) -> tuple[list[tuple[int, CaseStatement]], int, int]:
    """Those of the list that are shown, every one that is not plain among them; how many are left out, and their
    characters."""
    ordered = list(ordered)
    plain = [(at, statement) for at, statement in ordered if is_plain(statement)]
    if sum(len(statement.text) for _, statement in plain) <= LONG:
        return ordered, 0, 0
    shown: set[int] = set()
    characters = 0
    for at, statement in plain:
        if characters >= KEPT:
            break
        shown.add(at)
        characters += len(statement.text)
    left_out = [statement for at, statement in plain if at not in shown]
    kept = [(at, statement) for at, statement in ordered if at in shown or not is_plain(statement)]
    return kept, len(left_out), sum(len(statement.text) for statement in left_out)
