"""Where a quote really stands: a judge's quote is evidence only if its words are in the passage."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from metrics.judge import Evidence
from metrics.lexical.words import fold
from metrics.llm.passages import Piece, Source

SHORTEST = 4
"""Letters and digits that a quote needs (two in scripts that write a word in one or two)."""

_CUT_MARKS = re.compile(r"\s*(?:\.{3,}|…+|\[…\]|\[\.{3}\])\s*")


def evidence_of(quote: str, pieces: Sequence[Piece], sources: Sequence[Source]) -> tuple[Evidence, ...]:
    """The first place among the pieces where the quote stands, letter by letter, whatever the case, the blanks and the
    punctuation; nothing where it does not. Of a quote with «...» in it, the longest part counts.
    """
    parts = sorted(_CUT_MARKS.split(quote), key=len, reverse=True)
    wanted = _letters(parts[0])[0] if parts else ""
    if len(wanted) < (SHORTEST if wanted.isascii() else SHORTEST // 2):
        return ()
    for piece in pieces:
        source = sources[piece.source]
        letters, places = _letters(source.text[piece.start : piece.end])
        at = letters.find(wanted)
        if at >= 0:
            start = piece.start + places[at]
            end = piece.start + places[at + len(wanted) - 1] + 1
            if end < piece.end and unicodedata.category(source.text[end]) in ("Po", "Pf", "Pe"):
                end += 1
            return (Evidence(source.chunk, source.name, start, end, source.text[start:end]),)
    return ()


def _letters(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text, folded, and the character at which each stands."""
    folded = fold(text)
    kept = [(c, i) for i, c in enumerate(folded) if c.isalnum()]
    return "".join(c for c, _ in kept), [i for _, i in kept]
