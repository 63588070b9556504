"""Chinese statements in the words of their evidence, where an ordinary word has another of the same meaning.

Chinese is compared by pairs of characters, so «能容纳» beside «可容纳» would share one pair of two, and the other would
look like a substitution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from metrics.language import simplified
from metrics.lexical.words import word_lists

_GROUPS = [group.split() for group in word_lists()["same"]["chinese"]]
_OTHERS = {word: [other for other in group if other != word] for group in _GROUPS for word in group}
_WORD = re.compile("|".join(sorted(_OTHERS, key=len, reverse=True)))


def in_words_of(sources: Sequence[str], statements: Sequence[str]) -> list[str]:
    """The statements, each word that the sources do not have there replaced by one of its group that they do have.

    «There»: before the character that follows it, at the end after the one in front of it.

    >>> in_words_of(["会议室可容纳20人。"], ["会议室能容纳20人。", "会议室能开窗。"])
    ['会议室可容纳20人。', '会议室能开窗。']
    >>> in_words_of(["他可能来。"], ["他能来。"])
    ['他能来。']
    """
    said = [simplified(statement) for statement in statements]
    if not any(map(_WORD.search, said)):
        return list(statements)
    held: set[str] = set()
    for source in map(simplified, sources):
        for match in _WORD.finditer(source):
            held |= _spots(source, match)

    def instead(match: re.Match[str]) -> str:
        words = (match[0], *_OTHERS[match[0]])
        return next((word for word in words if _spot(match.string, match, word) in held), match[0])

    return [_put(statement, text, instead) for text, statement in zip(said, statements, strict=True)]


def _put(statement: str, simple: str, instead: Callable[[re.Match[str]], str]) -> str:
    """The statement with other words; the rest of its characters stay as it has them (`simple`: one for one)."""
    pieces = []
    end = 0
    for match in _WORD.finditer(simple):
        word = instead(match)
        if word != match[0]:
            pieces += [statement[end : match.start()], word]
            end = match.end()
    return "".join(pieces) + statement[end:]


def _spot(text: str, match: re.Match[str], word: str) -> str:
    after = text[match.end() : match.end() + 1]
    return word + after if after.isalnum() else text[max(match.start() - 1, 0) : match.start()] + word


def _spots(text: str, match: re.Match[str]) -> set[str]:
    return {text[match.start() : match.end() + 1], text[max(match.start() - 1, 0) : match.end()]}
