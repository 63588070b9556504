"""What the negators of a sentence deny: the characters that each reaches over, and which word it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metrics.lexical.words import any_of, word_lists

REACH_WIDE, REACH = 8, 40
"""Characters that a negator reaches over, at most to the end of its clause."""
_LISTS = word_lists()["negation"]
_NEGATORS = frozenset(_LISTS["english"])
_DETERMINERS = frozenset(_LISTS["english_determiners"])
_PREPOSITIONS = frozenset(_LISTS["english_prepositions"])

_CLAUSE_END = re.compile(
    r"[,;:.!?()，；：。！？、]|\b(?:but|although|though|while|and)\b|但|而|(?<!成)就(?![业近诊职读任餐医座])|也(?!门)|却|仍"
)
WORD = re.compile(r"\b[a-z]*n ?' ?t\b|\b[a-z]+\b")
_ENGLISH_EXCEPT = re.compile(rf"\b(?:{any_of(_LISTS['english_except'])}|no (?=\d))")
_ENGLISH_HIDDEN = re.compile(rf"\b(?:{any_of(_LISTS['english_hidden'])})\b")
_ELLIPSIS = re.compile(r"\s*(?:[,;.!?)]|$|do(?:es)? (?:so|it|that)\b)")
_CHINESE_NEGATOR = re.compile(rf"(?P<skip>{any_of(_LISTS['chinese_except'])})|(?P<negator>{any_of(_LISTS['chinese'])})")
_CHINESE_AUXILIARY = re.compile(rf"(?:{any_of(_LISTS['chinese_auxiliary'])})*")


class Reach(NamedTuple):
    """Characters that a negator reaches over. `firm`: it denies what comes first in them."""

    start: int
    stop: int
    firm: bool
    negator: int = -1
    """Where the negator begins."""
    subject: bool = False
    """It may deny any term that it reaches over: «no dogs are allowed»."""
    verb: int = -1
    """Where a verb may begin that it denies as well, as in «contains no gluten»; -1: none."""


def reaches_of(sentence: str, compared: Sequence[tuple[int, int]] = ()) -> Iterator[Reach]:
    """What the negators of a sentence reach over, in order and without overlaps; those within `compared` deny nothing.

    «prevents X from Y» and «rather than X» deny without saying of what (not firm); so does «X cannot.», which reaches
    back over its own clause.
    """
    excepted = [m.span() for m in _ENGLISH_EXCEPT.finditer(sentence)]
    found: list[Reach] = []
    for match in WORD.finditer(sentence):
        word = match[0]
        if not ("'" in word or word in _NEGATORS):
            continue
        if not any(low <= match.start() < high for low, high in excepted):
            end = _clause_end(sentence, match.end(), REACH)
            begin = _clause_start(sentence, match.start())
            if _ELLIPSIS.match(sentence, match.end()):
                found.append(Reach(begin, match.start(), False))
            elif word in _DETERMINERS:
                before = sentence[begin : match.start()].split()
                verb = begin if before and before[-1] not in _PREPOSITIONS else -1
                found.append(Reach(match.end(), end, True, match.start(), not before, verb))
            else:
                found.append(Reach(match.end(), end, True, match.start()))
    for match in _ENGLISH_HIDDEN.finditer(sentence):
        found.append(Reach(match.end(), _clause_end(sentence, match.end(), REACH), False))
    for match in _CHINESE_NEGATOR.finditer(sentence):
        if match["negator"]:
            auxiliary = _CHINESE_AUXILIARY.match(sentence, match.end())
            begin = auxiliary.end() if auxiliary else match.end()
            found.append(Reach(begin, _clause_end(sentence, begin, REACH_WIDE), True, match.start()))
    if compared:
        found = [reach for reach in found if not any(low <= reach.negator < high for low, high in compared)]
    found.sort()
    last = 0
    for reach in found:
        low = max(reach.start, last)
        if low < reach.stop:
            yield reach._replace(start=low)
            last = reach.stop
        else:
            yield reach._replace(start=low, stop=low)


def _clause_start(sentence: str, at: int) -> int:
    """Where the clause that holds character `at` begins, at most `REACH` characters before it."""
    ends = [m.end() for m in _CLAUSE_END.finditer(sentence, max(at - REACH, 0), at)]
    return ends[-1] if ends else max(at - REACH, 0)


def _clause_end(sentence: str, at: int, reach: int) -> int:
    stop = _CLAUSE_END.search(sentence, at + 1, at + reach)
    return stop.start() if stop else min(at + reach, len(sentence))
