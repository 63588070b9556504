"""What a text says about a quantity beside its value: at least, at most, before, after, from, to.

«More than 5» and «fewer than 5» hold the same number, and all other words of the comparison are stop words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from metrics.lexical.quantities import CLOCK, CLOCK12, Quantity, agrees
from metrics.lexical.words import any_of, word_lists

REACH = 44
"""Characters before and after a quantity that are looked at."""
_JOINTS = re.compile(r"(?:\s*,?\s*(?:the\s+|of\s+)*|[-/.]|日|号|年|月)")


@dataclass(frozen=True, slots=True)
class Mark:
    """A quantity, or all parts of one date. -1, 0 or 1 each: no more, nothing said, no less; before, after; from, to."""

    parts: tuple[Quantity, ...]
    size: int
    time: int
    end: int
    denial: tuple[int, int]
    """Characters of a negator that is part of the comparison, as in «not more than 5»."""

    def says_the_same_as(self, other: Mark) -> bool:
        """Whether the two hold the same quantity, of a date all parts that both name."""
        pairs = [(a, b) for a in self.parts for b in other.parts if len(self.parts) == 1 == len(other.parts) or a.unit == b.unit]
        return bool(pairs) and all(agrees(a, b) for a, b in pairs)

    def against(self, other: Mark) -> bool:
        return self.size * other.size < 0 or self.time * other.time < 0


_LISTS = word_lists()["bounds"]


_FILLER = r"(?:\s(?:a|an|the|about|around|some|age|of|total|on|at))*\s*[$€£¥₹]?$"
_NOT = r"(?P<not>(?:\b(?:not|never|cannot|nor|no)|n't)\s(?:[a-z]+\s){0,3}?)?"
_BEFORE = re.compile(
    rf"{_NOT}\b(?:(?P<more>{any_of(_LISTS['more'])})|(?P<less>{any_of(_LISTS['less'])})|(?P<since>{any_of(_LISTS['since'])})|(?P<until>{any_of(_LISTS['until'])}))"
    + _FILLER
)
_NOT_CHINESE = r"(?P<not>(?:不得|不能|不可以|不可|不应|不会|不宜|不要|未|没有|没|勿|不)[^，。；、]{0,2}?)?"
_BEFORE_CHINESE = re.compile(
    rf"{_NOT_CHINESE}(?:(?P<more>{any_of(_LISTS['more_chinese'])})|(?P<less>{any_of(_LISTS['less_chinese'])})|"
    rf"(?P<since>{any_of(_LISTS['since_chinese'])})|(?P<until>{any_of(_LISTS['until_chinese'])}))\s?(?:约|大约|了|达)?$"
)
_AFTER = re.compile(
    rf"\s*(?:[a-z]+\s+){{0,2}}?(?:(?P<more>(?:or|and)\s(?:{any_of(_LISTS['or_more'])})\b|at least)|"
    rf"(?P<less>(?:or|and)\s(?:{any_of(_LISTS['or_less'])})\b|at most)|(?P<after>after\b|later\b)|(?P<before>before\b|earlier\b|ago\b))"
)
_AFTER_CHINESE = re.compile(
    rf"[^\W\d]?(?:(?P<more>{any_of(_LISTS['more_after'])})|(?P<less>{any_of(_LISTS['less_after'])})|"
    r"(?P<after>之后|以后|后(?![来续台面天]))|(?P<before>之前|以前|前(?![往后面端台途来])))"
)
_RANGE = re.compile(r"\s*(?:(?:and|to|until|till|through)(?:\s(?:the|about))*|[-~—至到])\s*[$€£¥₹]?")
_FROM = re.compile(r"(?:\b(?:from|between)(?:\s(?:the|about|around|some))*\s*|[从由自])[$€£¥₹]?$")
_TO = re.compile(r"(?:\bto(?:\s(?:the|about|around|some))*\s*|[至到])[$€£¥₹]?$")


def marks(sentence: str, numbers: Sequence[Quantity]) -> tuple[Mark, ...]:
    """The quantities of a folded sentence with what is said about each.

    >>> from metrics.lexical.quantities import quantities
    >>> [m.size for text in ("over 5 km", "not over 5 km", "5 km") for m in marks(text, quantities(text))]
    [1, -1, 0]
    """
    found: list[Mark] = []
    groups = list(_groups(sentence, numbers))
    for k, parts in enumerate(groups):
        start, stop = parts[0].start, parts[-1].end
        dated = parts[0].unit.startswith("#")
        size, time, denial = _bound(sentence, start, stop, dated)
        following = groups[k + 1][0].start if k + 1 < len(groups) else -1
        opened = _FROM.search(sentence, max(start - REACH, 0), start)
        end = -1 if opened or (following >= 0 and _RANGE.fullmatch(sentence, stop, following)) else 0
        if not end:
            previous = groups[k - 1][-1].end if k else -1
            joined = found and found[-1].end < 0 and _RANGE.fullmatch(sentence, previous, start)
            end = 1 if joined or _TO.search(sentence, max(start - REACH, 0), start) else 0
        found.append(Mark(parts, size, time, end, denial))
    return tuple(found)


def _groups(sentence: str, numbers: Sequence[Quantity]) -> Iterator[tuple[Quantity, ...]]:
    """Single quantities, and the parts of one date together."""
    parts: list[Quantity] = []
    for quantity in numbers:
        joins = (
            parts
            and quantity.unit in ("#year", "#month", "#day")
            and parts[-1].unit in ("#year", "#month", "#day")
            and quantity.unit not in {part.unit for part in parts}
            and (parts[-1].end == quantity.start or _JOINTS.fullmatch(sentence, parts[-1].end, quantity.start))
        )
        if parts and not joins:
            yield tuple(parts)
            parts = []
        parts.append(quantity)
    if parts:
        yield tuple(parts)


def _bound(sentence: str, start: int, stop: int, dated: bool) -> tuple[int, int, tuple[int, int]]:
    size = time = 0
    denial = (0, 0)
    low = max(start - REACH, 0)
    if (m := _BEFORE.search(sentence, low, start) or _BEFORE_CHINESE.search(sentence, low, start)) is not None:
        if m["more"] or m["less"]:
            size = 1 if m["more"] else -1
        elif dated:
            size = 1 if m["since"] else -1
        if size and m["not"]:
            size, denial = -size, m.span("not")
    if (m := _AFTER.match(sentence, stop, stop + REACH) or _AFTER_CHINESE.match(sentence, stop, stop + REACH)) is not None:
        if m["more"] or m["less"]:
            size = size or (1 if m["more"] else -1)
        elif dated and not sentence[stop : stop + 1].isspace():  # 6月15日之前; but «on 15 June after dinner»
            size = size or (1 if m["after"] else -1)
        elif not dated:
            time = 1 if m["after"] else -1
    return size, time, denial


def comparable_marks(one: Mark, other: Mark) -> bool:
    """Whether two marks measure alike, so that they can have changed places."""
    a, b = one.parts[0].unit, other.parts[0].unit
    return a == b or {a, b} <= {CLOCK, CLOCK12} or (a.startswith("#") and b.startswith("#"))
