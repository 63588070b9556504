"""Text of an event on a page: escaped, and what a browser would obey in silence is made visible.

Escaping makes markup inert. Controls, marks that turn the reading direction around and lone surrogates stand as codes,
so that no text looks like another one; scripts that are written from right to left stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from consumer.case_file import CaseStatement

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_BREAKS = re.compile("\r\n|\r")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a passage. `says`: numbers (from 1) of the statements whose evidence it is part of; `ends`: of those
    whose evidence ends with it; `begins`: of those whose first evidence in this passage begins with it."""

    text: str
    says: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


def shown(text: str | None) -> Markup:
    """`text` as it is put into a page.

    >>> shown("<b>\\u202e")
    Markup('&lt;b&gt;<span class="code">U+202E</span>')
    """
    if not text:
        return Markup()
    text = _BREAKS.sub("\n", text)
    found: list[str] = []
    end = 0
    for match in _UNSAFE.finditer(text):
        found.append(escape(text[end : match.start()]))
        found.append(f'<span class="code">U+{ord(match[0]):04X}</span>')
        end = match.end()
    found.append(escape(text[end:]))
    return Markup("".join(found))


def one_line(text: str | None, characters: int) -> Markup:
    """The beginning of `text` on one line."""
    if not text:
        return Markup()
    line = " ".join(text[: 4 * characters].split())
    if len(line) <= characters and len(text) <= 4 * characters:
        return shown(line)
    return shown(line[:characters].rstrip()) + "…"


def window_title(text: str | None, characters: int = 60) -> str:
    """The beginning of `text` for a title, which shows no markup: what is unsafe is left out.

    >>> window_title("\u202e<b> leave")
    '<b> leave'
    """
    return " ".join(_UNSAFE.sub("", (text or "")[: 4 * characters]).split())[:characters]


def marked_passage(text: str, at: int, statements: Sequence[CaseStatement]) -> list[Piece]:
    """Passage number `at` cut where evidence begins or ends; joined, the pieces are the text. Evidence that does not
    lie inside the text has no piece."""
    spans = [
        (evidence.start, evidence.end, number)
        for number, statement in enumerate(statements, 1)
        for evidence in statement.evidence
        if evidence.chunk == at and 0 <= evidence.start < evidence.end <= len(text)
    ]
    cuts = sorted({0, len(text), *(start for start, _, _ in spans), *(end for _, end, _ in spans)})
    first: dict[int, int] = {}
    for start, _, number in spans:
        first[number] = min(start, first.get(number, start))
    pieces = []
    for start, end in pairwise(cuts):
        says = sorted({number for begin, until, number in spans if begin <= start and end <= until})
        begins = sorted({number for number, begin in first.items() if begin == start})
        ends = sorted({number for _, until, number in spans if until == end})
        pieces.append(Piece(text[start:end], tuple(says), tuple(begins), tuple(ends)))
    return pieces
