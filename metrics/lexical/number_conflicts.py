"""Quantities that the evidence has otherwise: another value, denied, bounded the other way, in each other's place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations

from metrics.lexical.bounds import Mark
from metrics.lexical.evidence import Window
from metrics.lexical.kinds import SHARED, Conflict, Kind, joints_of, same_place, words_of
from metrics.lexical.quantities import Quantity, agrees, comparable
from metrics.lexical.reading import Sentence

MOST_MARKS = 8
"""Quantities of a statement that are looked at for changed places."""
_NUMBERED = re.compile(r"\d{1,2}[.)]? +[A-Z][a-z]")


def number_conflicts(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """`text` and `source` are the texts that statement and window were read from."""
    yield from _numbers(statement, text, window, source)
    yield from _denials(statement, text, window, source)
    yield from _bounds(statement, text, window, source)
    found = list(_changed_places(statement, text, window, source))
    yield from found or _attached(statement, text, window, source)


def _numbers(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    there = [(s, q) for s in window.sentences for q in s.numbers]
    for said in statement.numbers:
        if said in statement.denied or any(agrees(said, q) for _, q in there):
            continue
        for sentence, q in there:
            rival = comparable(said, q) or (
                said.figure is not None and said.figure == q.figure and said.unit and q.unit
            )
            if (
                rival
                and q not in sentence.denied
                and not _numbering(source, sentence, q)
                and not any(agrees(mine, q) for mine in statement.numbers)
                and same_place(statement, said.start, sentence, q.start)
            ):
                yield Conflict(Kind.NUMBER, words_of(text, statement, said), words_of(source, sentence, q))
                break


def _numbering(source: str, sentence: Sentence, quantity: Quantity) -> bool:
    """Whether a number only counts the lines or the notes of a text: «1 Preheat the oven», «as shown [3]»."""
    start, end = sentence.start + quantity.start, sentence.start + quantity.end
    if source[max(start - 1, 0) : start] == "[" and source[end : end + 1] == "]":
        return True
    return quantity.start == 0 and _NUMBERED.match(source, start) is not None


def _denials(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«Leave is not 26 days» against «Leave is 26 days»: no sentence as near sides with it."""
    near = [(len(statement.vocabulary & s.vocabulary), s) for s in window.sentences]
    near = [(shared, s) for shared, s in near if shared >= SHARED * len(statement.vocabulary)]
    for said in statement.numbers:
        denied = said in statement.denied
        there = [(shared, s, q) for shared, s in near for q in s.numbers if agrees(said, q)]
        most = max((share for share, _, _ in there), default=0)
        rivals = [(s, q) for share, s, q in there if share == most]
        if rivals and all((q in s.denied) != denied for s, q in rivals):
            sentence, found = rivals[0]
            mine, other = words_of(text, statement, said), words_of(source, sentence, found)
            yield Conflict(Kind.NEGATION, f"not {mine}" if denied else mine, other if denied else f"not {other}")


def _bounds(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«More than 5 kg» against «less than 5 kg», «before 15 June» against «after 15 June»."""
    bounded = [mark for mark in statement.marks if mark.size or mark.time or mark.per]
    if not bounded:
        return
    least = SHARED * len(statement.vocabulary)
    near = [s for s in window.sentences if len(statement.vocabulary & s.vocabulary) >= least]
    for said in bounded:
        there = [(s, mark) for s in near for mark in s.marks if said.same_quantity(mark)]
        rivals = [(s, mark) for s, mark in there if said.against(mark) and s.negations % 2 == statement.negations % 2]
        if rivals and len(rivals) == len(there):
            sentence, found = rivals[0]
            if same_place(statement, said.start, sentence, found.start):
                low, high = statement.start + said.start, statement.start + said.end
                own = tuple(t for t, at in zip(statement.terms, statement.places, strict=True) if low <= at < high)
                mine, other = words_of(text, statement, said), words_of(source, sentence, found)
                yield Conflict(Kind.OPPOSITE, mine, other, terms=own)


def _changed_places(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«From 30 to 20» against «from 20 to 30»; «5 in May and 7 in June» against «7 in May and 5 in June»."""
    sides = [(s, _counterparts(s)) for s in window.sentences if len(s.marks) > 1]
    for one, other in combinations(statement.marks[:MOST_MARKS], 2):
        if not one.comparable(other) or one.same_value(other):
            continue
        turned: list[tuple[Sentence, Mark, Mark]] = []
        for sentence, same in sides:
            first, second = same(one), same(other)
            if len(first) == len(second) == 1 and first[0] is not second[0]:
                pair = first[0], second[0]
                if _turned(statement, one, other, sentence, *pair):
                    turned.append((sentence, *pair))
                else:
                    turned = []
                    break
        for sentence, a, b in turned[:1]:
            said = f"{words_of(text, statement, one)} … {words_of(text, statement, other)}"
            found = f"{words_of(source, sentence, b)} … {words_of(source, sentence, a)}"
            yield Conflict(Kind.ORDER, said, found, terms=joints_of(statement, window))


def _attached(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«In June 410» against «410 in May and 370 in June»: a number beside another date than its own, or the like."""
    for sentence in window.sentences:
        if len(sentence.marks) < 4 or not sentence.cuts:
            continue
        same = _counterparts(sentence)
        for one, other in combinations(statement.marks[:MOST_MARKS], 2):
            if one.comparable(other):
                continue
            first, second = same(one), same(other)
            part = [m for m in statement.marks if _segment(statement, m) == _segment(statement, one)]
            alone = all(sum(m.comparable(mark) for m in part) == 1 for mark in (one, other))
            together = len(statement.marks) == 2 or (other in part and alone)
            if len(first) != 1 or len(second) != 1 or not together:
                continue
            here, there = _segment(sentence, first[0]), _segment(sentence, second[0])
            by_other = [m for m in sentence.marks if _segment(sentence, m) == there and one.comparable(m)]
            by_one = [m for m in sentence.marks if _segment(sentence, m) == here and other.comparable(m)]
            if here != there and by_other and by_one:
                said = f"{words_of(text, statement, one)} … {words_of(text, statement, other)}"
                found = f"{words_of(source, sentence, by_other[0])} … {words_of(source, sentence, second[0])}"
                yield Conflict(Kind.ORDER, said, found, terms=joints_of(statement, window))
                return


def _segment(sentence: Sentence, mark: Mark) -> int:
    return sentence.segment(sentence.start + mark.number)


def _counterparts(sentence: Sentence) -> Callable[[Mark], list[Mark]]:
    """Of a mark of the statement: those of the sentence that have the same value, or where there are none those that
    may be the same quantity. Each is looked for once, however many pairs ask."""
    known: dict[int, list[Mark]] = {}

    def same(said: Mark) -> list[Mark]:
        if said.start not in known:
            marks = sentence.marks
            known[said.start] = [m for m in marks if said.same_value(m)] or [m for m in marks if said.same_quantity(m)]
        return known[said.start]

    return same


def _turned(statement: Sentence, one: Mark, other: Mark, sentence: Sentence, a: Mark, b: Mark) -> bool:
    """Whether `one` and `other` of the statement stand each in the other's place as `a` and `b` of the evidence."""
    if one.side * other.side < 0 and a.side * b.side < 0:
        return one.side != a.side
    if a.start < b.start:
        return False
    there = _anchors(sentence, a)
    once = {key for key, n in Counter(key for _, key in there).items() if n == 1}
    own = _anchors(statement, one)
    once -= {key for key, n in Counter(key for _, key in own).items() if n > 1}
    mine = [(at, key) for at, key in own if key in once]
    before = [key for at, key in mine if at < one.start][-1:]
    between = [key for at, key in mine if one.start < at < other.start]
    after = [key for at, key in mine if at > other.start][:1]
    early = {key for at, key in there if at < b.start}
    middle = {key for at, key in there if b.start < at < a.start}
    late = {key for at, key in there if at > a.start}
    if not between:
        return False
    # «Anna 5, Bruno 7» and «5 for Anna, 7 for Bruno»: the words stand before the numbers or behind them on either side.
    led = bool(before) and before[0] in early and between[-1] in middle and early.isdisjoint(after)
    followed = bool(after) and between[0] in middle and after[0] in late and late.isdisjoint(before)
    return led or followed


def _anchors(sentence: Sentence, unlike: Mark) -> list[tuple[int, object]]:
    """What a number may belong to: terms, and quantities of another kind, by their character of the sentence."""
    found: list[tuple[int, object]] = [
        (place - sentence.start, term) for term, place in zip(sentence.terms, sentence.places, strict=True)
    ]
    found += [(m.start, (m.parts[0].unit, m.parts[0].value)) for m in sentence.marks if not unlike.comparable(m)]
    return sorted(found, key=lambda anchor: anchor[0])
