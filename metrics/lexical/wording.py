"""Words of a conflict as the texts write them: rules compare stems, «polici», and a reason shows «policies»."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from metrics.language import UNSPACED
from metrics.lexical.kinds import Conflict
from metrics.lexical.quantities import STAND_IN
from metrics.lexical.reading import Sentence

WORD = re.compile(rf"(?i:{STAND_IN})|(?:[A-Za-z]\.){{2,6}}|[^\s{UNSPACED}]+?(?=[^\w'&-]|[{UNSPACED}]|$)|.")
_SPACED = re.compile(r"[^\s/]+")


def as_written(
    found: Iterable[Conflict], statement: Sentence, text: str, *there: tuple[Sentence, str]
) -> list[Conflict]:
    """The conflicts with the words of `text`, which `statement` was read from, and of the evidence (sentences and the
    texts that they were read from)."""
    if not (conflicts := list(found)):
        return conflicts
    mine = _surfaces((statement, text))
    theirs = _surfaces(*there)
    return [replace(c, said=_reworded(c.said, mine), found=_reworded(c.found, theirs)) for c in conflicts]


def _surfaces(*read: tuple[Sentence, str]) -> dict[str, str]:
    """Stem of a word → the word where it stands first."""
    surfaces: dict[str, str] = {}
    for sentence, text in read:
        for term, place in zip(sentence.terms, sentence.places, strict=True):
            if term.isascii() and term not in surfaces and (word := WORD.match(text, place)):
                surfaces[term] = word[0]
    return surfaces


def _reworded(said: str, surfaces: Mapping[str, str]) -> str:
    """What was read of one word, «on» and «site», is that word once."""
    words: list[str] = []
    end = 0
    for match in _SPACED.finditer(said):
        word = surfaces.get(match[0], match[0])
        if not (words and word == words[-1] and word != match[0]):
            words += [said[end : match.start()], word]
        end = match.end()
    return "".join(words) + said[end:]
