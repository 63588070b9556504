"""What a text says about a quantity beside its value: at least, at most, before, after, from, to.

«More than 5» and «fewer than 5» hold the same number, and all other words of the comparison are stop words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from metrics.lexical.quantities import CLOCK, CLOCK12, DAY, MONTH, UNITS, YEAR, Quantity, agrees, comparable
from metrics.lexical.words import any_of, word_lists

REACH = 44
"""Characters before and after a quantity that are looked at."""
_JOINT = re.compile(r"\s*,?\s*(?:of\s+)?|[-/.]")


@dataclass(frozen=True, slots=True)
class Mark:
    """A quantity, or all parts of one date, at `sentence[start:end]`, its comparison included."""

    parts: tuple[Quantity, ...]
    start: int
    bound: int
    """Where the comparison begins, behind its negator: «more» of «not weigh more than 5 kg»."""
    end: int
    size: int = 0
    """1: that or more, -1: that or less, 0: neither is said."""
    time: int = 0
    """1: so much later, -1: so much earlier."""
    side: int = 0
    """-1: from it on, 1: up to it."""
    per: str = ""
    """Of what it is the price or the rate, «12 euros an hour»: a canonical unit."""

    @property
    def number(self) -> int:
        """Where the quantity itself begins; from `start` to there a negator denies nothing: «not more than 5»."""
        return self.parts[0].start

    def same_quantity(self, other: Mark) -> bool:
        """Whether the two hold the same quantity; of dates, all parts that both name."""
        single = len(self.parts) == len(other.parts) == 1
        pairs = [(a, b) for a in self.parts for b in other.parts if single or a.unit == b.unit]
        return bool(pairs) and all(agrees(a, b) for a, b in pairs)

    def same_value(self, other: Mark) -> bool:
        """The same quantity, and no rounding or half of the day between the two: 9 o'clock may be 21:00."""
        values = [{part.value for part in mark.parts} for mark in (self, other)]
        return self.same_quantity(other) and (values[0] <= values[1] or values[1] <= values[0])

    def comparable(self, other: Mark) -> bool:
        """Whether the two measure alike, so that they can have changed places."""
        a, b = self.parts[0].unit, other.parts[0].unit
        if self.side * other.side < 0 and "" in (a, b):
            return not (a + b).startswith("#")  # from 20 to 30 euros
        if a == b == "":
            return comparable(self.parts[0], other.parts[0])  # 2019 is no count
        return a == b or {a, b} <= {CLOCK, CLOCK12} or {a, b} <= _DATED

    def against(self, other: Mark) -> bool:
        rates = bool(self.per and other.per) and self.per != other.per
        return rates or self.size * other.size < 0 or self.time * other.time < 0


_DATED = {YEAR, MONTH, DAY}
_LISTS = word_lists()["bounds"]


_FILLER = r"(?:\s(?:a|an|the|about|around|some|age|of|total|on|at))*\s*[$€£¥₹]?$"
_NOT = r"(?:\b(?:not|never|cannot|nor|no)|n't)\s"
_BEFORE = re.compile(
    rf"(?:(?P<not>{_NOT}(?:[a-z]+\s){{0,2}}?)?\b(?:(?P<more>{any_of(_LISTS['more'])})|(?P<less>{any_of(_LISTS['less'])}))|"
    rf"(?P<no>{_NOT})?\b(?:(?P<later>{any_of(_LISTS['later'])})|(?P<sooner>{any_of(_LISTS['sooner'])})|"
    rf"(?P<since>{any_of(_LISTS['since'])})|(?P<until>{any_of(_LISTS['until'])}))){_FILLER}"
)
"""«Not weigh more than 5 kg» sets a bound; «not seen since May» denies the seeing, «not before May» the bound."""
_BEFORE_CHINESE = re.compile(
    r"(?:(?P<not>(?:不得|不能|不可以|不可|不应|不会|不宜|不要|未|没有|没|勿|不)[^，。；、]{0,2}?)?"
    rf"(?:(?P<more>{any_of(_LISTS['more_chinese'])})|(?P<less>{any_of(_LISTS['less_chinese'])}))|"
    rf"(?P<no>(?!))?(?P<later>(?!))?(?P<sooner>(?!))?"
    rf"(?:(?P<since>{any_of(_LISTS['since_chinese'])})|(?P<until>{any_of(_LISTS['until_chinese'])})))\s?(?:约|大约|了|达)?$"
)
_AFTER = re.compile(
    rf"\s*(?:[a-z]+\s+){{0,2}}?(?:(?P<more>(?:or|and)\s(?:{any_of(_LISTS['or_more'])})\b|at least)|"
    rf"(?P<less>(?:or|and)\s(?:{any_of(_LISTS['or_less'])})\b|at most)|(?P<after>after\b|later\b)|"
    r"(?P<before>before\b|earlier\b|ago\b))"
)
_AFTER_CHINESE = re.compile(
    rf"[^\W\d]?(?:(?P<more>{any_of(_LISTS['more_after'])})|(?P<less>{any_of(_LISTS['less_after'])})|"
    r"(?P<after>之后|以后|后(?![来续台面天]))|(?P<before>之前|以前|前(?![往后面端台途来])))"
)
_PER = re.compile(rf"\s*(?:per|an?|each|every|/)\s*(?P<unit>{any_of(_LISTS['per'])})\b")
_CUT = re.compile(r"[,;:，；、：|]|\b(?:and|while|but|whereas)\b|而")
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
        before = sentence[max(start - REACH, 0) : start]
        side = 0
        opens = _FROM.search(before)
        following = groups[k + 1][0].start if k + 1 < len(groups) else stop
        joint = _RANGE.fullmatch(sentence, stop, following)
        if opens or (joint and "and" not in joint[0]):
            side = -1
        elif _TO.search(before) or (
            k and found[-1].side < 0 and _RANGE.fullmatch(sentence, groups[k - 1][-1].end, start)
        ):
            side = 1
        found.append(_marked(sentence, parts, side))
    return tuple(found)


def _groups(sentence: str, numbers: Sequence[Quantity]) -> Iterator[tuple[Quantity, ...]]:
    """Single quantities, and the parts of one date together."""
    parts: list[Quantity] = []
    for quantity in numbers:
        joins = (
            parts
            and quantity.unit in _DATED
            and {part.unit for part in parts} <= _DATED - {quantity.unit}
            and _JOINT.fullmatch(sentence, parts[-1].end, quantity.start)
        )
        if parts and not joins:
            yield tuple(parts)
            parts = []
        parts.append(quantity)
    if parts:
        yield tuple(parts)


def _marked(sentence: str, parts: tuple[Quantity, ...], side: int) -> Mark:
    start, stop = parts[0].start, parts[-1].end
    dated = parts[0].unit.startswith("#")
    size = time = 0
    begin, bound, end = start, start, stop
    low = max(start - REACH, 0)
    m = _BEFORE.search(sentence, low, start) or _BEFORE_CHINESE.search(sentence, low, start)
    if m and (m["since"] is None is m["until"] or dated):
        size = 1 if m["more"] or m["later"] or m["since"] else -1
        begin, bound = m.start(), max(m.start(), m.end("not"), m.end("no"))
        if begin < bound:
            size = -size
    m = _AFTER.match(sentence, stop, stop + REACH) or _AFTER_CHINESE.match(sentence, stop, stop + REACH)
    if m and (m["more"] or m["less"]):
        size, end = size or (1 if m["more"] else -1), m.end()
    elif m and not dated:
        time, end = 1 if m["after"] else -1, m.end()
    elif m and not sentence[stop : stop + 1].isspace():  # 6月15日之前; but «on 15 June after dinner»
        size, end = size or (1 if m["after"] else -1), m.end()
    rate = None if dated else _PER.match(sentence, stop, stop + REACH)
    return Mark(parts, begin, bound, max(end, rate.end()) if rate else end, size, time, side, _per(rate))


def _per(rate: re.Match[str] | None) -> str:
    """«12 euros an hour» is per 3,600 seconds, «5 euros each person» per person."""
    if rate is None:
        return ""
    unit, factor = UNITS.get(rate["unit"], (rate["unit"], 1.0))
    return f"{factor:g} {unit}"


def segments(sentence: str, marked: Sequence[Mark]) -> tuple[int, ...]:
    """Where the parts of a sentence begin that may each say something else of its own number: «5 in May, 7 in June».

    A comma, «and» and the like cut, and the second end of «from 410 in May to 370 in June».
    """
    cuts = [m.start() for m in _CUT.finditer(sentence)]
    cuts = [at for at in cuts if not any(mark.start <= at < mark.end for mark in marked)]
    for opened, closed in pairwise(marked):
        if opened.side < 0 < closed.side and not any(opened.number < at < closed.number for at in cuts):
            cuts.append(closed.number)
    return tuple(sorted(cuts))
