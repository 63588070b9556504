"""Chinese statements in the words of their evidence, where an ordinary word has another of the same meaning.

Chinese is compared by pairs of characters, so «能容纳» beside «可容纳» would share one pair of two, and the other would
look like a substitution.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from metrics.language import simplified
from metrics.lexical.words import any_of, word_lists

_SAME = word_lists()["same"]


def _others(groups: list[str]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for group in map(str.split, groups):
        for word in group:
            table.setdefault(word, []).extend(other for other in group if other != word)
    return table


_OTHERS = _others(_SAME["chinese"])
_HERE = _others(_SAME["chinese_here"])
_WORD = re.compile(any_of({*_OTHERS, *_HERE, *_SAME["chinese_alone"]}))


def in_words_of(sources: Sequence[str], statements: Sequence[str]) -> list[str]:
    """The statements, each word that the sources do not have there replaced by one of its group that they do have.

    «There»: before the character that follows it, at the end after the one in front of it. Words of two characters and
    more, of which the sources hold the other one only, are replaced wherever they stand.

    >>> in_words_of(["会议室可容纳20人。"], ["会议室能容纳20人。", "会议室能开窗。"])
    ['会议室可容纳20人。', '会议室能开窗。']
    >>> in_words_of(["他可能来。"], ["他能来。"])
    ['他能来。']
    >>> in_words_of(["展览每年举办一次。"], ["每年都会举行展览。"])
    ['每年都会举办展览。']
    """
    said = [simplified(statement) for statement in statements]
    if not any(map(_WORD.search, said)):
        return list(statements)
    spots: set[str] = set()
    words: set[str] = set()
    for source in map(simplified, sources):
        for match in _WORD.finditer(source):
            words.add(match[0])
            spots |= _spots(source, match)

    return [
        _instead(statement, text, spots, words) if _WORD.search(text) else statement
        for statement, text in zip(statements, said, strict=True)
    ]


def _instead(statement: str, simple: str, spots: Set[str], words: Set[str]) -> str:
    """The statement with other words; the rest of its characters stay as it has them (`simple`: one for one).

    From the end on, so that what follows a word stands there as the sources have it already.
    """
    for match in reversed(list(_WORD.finditer(simple))):
        word = _chosen(simple, match, spots, words)
        if word != match[0]:
            simple = simple[: match.start()] + word + simple[match.end() :]
            statement = statement[: match.start()] + word + statement[match.end() :]
    return statement


def _chosen(text: str, match: re.Match[str], spots: Set[str], words: Set[str]) -> str:
    word = match[0]
    same = _OTHERS.get(word, [])
    for other in (word, *same, *_HERE.get(word, [])):
        if _spot(text, match, other) in spots:
            return other
    if word in words or len(word) < 2:
        return word
    return next((other for other in same if len(other) > 1 and other in words), word)


def _spot(text: str, match: re.Match[str], word: str) -> str:
    after = text[match.end() : match.end() + 1]
    return word + _any_figure(after) if after.isalnum() else text[max(match.start() - 1, 0) : match.start()] + word


def _spots(text: str, match: re.Match[str]) -> set[str]:
    after = _any_figure(text[match.end() : match.end() + 1])
    return {match[0] + after, text[max(match.start() - 1, 0) : match.end()]}


def _any_figure(character: str) -> str:
    """The same for all figures: 有36间 and 有三十六间."""
    return "#" if character.isdecimal() or (character and character in "一二两三四五六七八九十百千") else character
