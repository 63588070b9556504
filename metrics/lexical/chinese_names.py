"""Chinese names of persons and places, which no capitals mark: another one in the same place of a sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from metrics.lexical.words import any_of, word_lists

MOST = 6
"""Names of a statement that are looked at."""
NEXT = 3
"""Characters on either side that are compared."""
_LISTS = word_lists()["names"]
_HAN = "[\u4e00-\u9fff]"
_SURNAMES = frozenset(_LISTS["surnames"])
_SURE = frozenset(_LISTS["sure_surnames"])
_DOUBLE = frozenset(_LISTS["double_surnames"])
_SURNAME = f"(?:{any_of(_DOUBLE)}|[{_LISTS['surnames']}])"
_TITLED = re.compile(rf"(?P<name>{_SURNAME}{_HAN}{{0,2}}?)(?P<title>{any_of(_LISTS['titles'])})")
_START = re.compile(rf"(?:{_SURNAME}|[小老阿][{_LISTS['surnames']}])")
_SUFFIX = re.compile(any_of(_LISTS["suffixes"]))
_PLACE = re.compile(any_of(_LISTS["places"]))
_NO_NAME = re.compile(any_of(_LISTS["no_names"]))
_WIDE = re.compile(_HAN)
_EDGES = frozenset(_LISTS["edges"])
"""Characters that may stand right before or behind a name without being a part of it."""


_BREAKS = frozenset("的了是由被在把")


@dataclass(frozen=True, slots=True)
class Name:
    """What may be a name, at `text[start:end]` of a folded text. `kind`: its title or suffix, "place" or "full"."""

    text: str
    kind: str
    start: int
    end: int


def unknown_names(statement: str, known: Collection[str]) -> list[Name]:
    """What may be a name in a folded statement and holds a pair of characters that is not in `known`.

    >>> [name.text for name in unknown_names("合同由李建军签署。", {"合同", "同由", "签署"})]
    ['李建军', '李建']
    """
    if not _WIDE.search(statement):
        return []
    return [
        name
        for name in _names(statement)
        if any(name.text[k : k + 2] not in known for k in range(max(len(name.text) - 1, 1)))
    ]


def others_in_place(names: list[Name], statement: str, evidence: str) -> Iterator[tuple[Name, str]]:
    """Each of the statement's names with the one that a folded sentence has in its place.

    >>> said, found = "合同由李建军签署。", "签署合同的是王建国。"
    >>> [other for _, other in others_in_place(unknown_names(said, ()), said, "合同由王建国签署。")]
    ['王建国']
    """
    rivals = list(_names(evidence)) if names else []
    end = 0
    for name in names:
        if name.start < end:
            continue
        for rival in rivals:
            if (
                rival.kind == name.kind
                and rival.text not in statement
                and _same_place(name, statement, rival, evidence)
            ):
                yield name, rival.text
                end = name.end
                break


def _names(text: str) -> Iterator[Name]:
    for match in _TITLED.finditer(text):
        if not _NO_NAME.match(text, match.start()):
            yield Name(match[0], match["title"], *match.span())
    for match in _PLACE.finditer(text):
        yield Name(match[0], "place", *match.span())
    for match in _SUFFIX.finditer(text):
        for length in (4, 3, 2):
            start = match.start() - length
            name = text[start : match.start()] if start >= 0 else ""
            if len(name) == length and _may_be_inside(name) and not _NO_NAME.search(name):
                yield Name(name, match[0], start, match.start())
    for match in _START.finditer(text):
        start = match.start()
        if _NO_NAME.match(text, start):
            continue
        if match[0][0] in "小老阿":
            yield Name(match[0], "full", start, match.end())
            continue
        for length in (len(match[0]) + 2, len(match[0]) + 1):
            name = text[start : start + length]
            if len(name) == length and all(map(_WIDE.match, name)) and (length > 2 or name[0] in _SURE):
                yield Name(name, "full", start, start + length)


def _may_be_inside(name: str) -> bool:
    """Whether characters may be the front of a name: 仁和 of 仁和制药, but not 的大 of «最好的大学»."""
    return name[0] not in _EDGES and all(c not in _BREAKS and _WIDE.match(c) for c in name)


def _same_place(name: Name, statement: str, rival: Name, evidence: str) -> bool:
    """Whether both stand between the same characters, or next to the same ones and at the edge of a word."""
    if _TITLED.fullmatch(name.text):
        return True
    if len(name.text) == 2 == len(rival.text) and name.kind == "full" and name.text[0] == rival.text[0]:
        return False  # 方法, 方式
    left = _common(statement[: name.start][::-1], evidence[: rival.start][::-1])
    right = _common(statement[name.end :], evidence[rival.end :])
    if not left and not (_edge(statement, name.start - 1) and _edge(evidence, rival.start - 1)):
        return False
    if not right and not (_edge(statement, name.end) and _edge(evidence, rival.end)):
        return False
    return max(left, right) >= 2


def _common(one: str, other: str) -> int:
    count = 0
    while count < min(len(one), len(other), NEXT) and one[count] == other[count] and one[count].isalnum():
        count += 1
    return count


def _edge(text: str, at: int) -> bool:
    return not 0 <= at < len(text) or text[at] in _EDGES or not _WIDE.match(text[at])
