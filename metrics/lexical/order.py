"""The words of the evidence in another order, where the order says who did what to whom."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from metrics.lexical.evidence import Window
from metrics.lexical.kinds import Conflict, Kind, joints_of
from metrics.lexical.reading import Sentence

SPAN = 12
"""Terms within which two that have changed places are looked for."""
SAME_WORDS = 0.8
"""Coverage from which another order of the same words is looked at."""
_LISTED = re.compile("[,;:.、，；：。]")


def order_conflicts(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«A acquired B» against «B acquired A», «from A to B» against «from B to A», «A before B» against «B before A»."""
    joints = joints_of(statement, window)
    if window.coverage < SAME_WORDS and not (joints and _mostly_held(statement, window, len(joints))):
        return
    for sentence in window.sentences:
        mine, theirs = dict(statement.roles), dict(sentence.roles)
        for role in sorted(mine.keys() & theirs.keys()):
            if [r for r, _ in statement.roles].count(role) + [r for r, _ in sentence.roles].count(role) > 2:
                continue
            at, there = mine[role], theirs[role]
            term, other = statement.terms[at], sentence.terms[there]
            if term != other and term in sentence.terms[:there] and other in statement.terms[:at]:
                yield Conflict(Kind.ORDER, f"{role} {term}", f"{role} {other}", terms=joints)
        if statement.passive == sentence.passive and not _numbers_follow(statement, sentence):
            found = _pivot(statement, sentence) or _exchange(statement, text, sentence, source)
            if found:
                yield Conflict(Kind.ORDER, *found, terms=joints)


def _numbers_follow(statement: Sentence, sentence: Sentence) -> bool:
    """Whether numbers have changed places along with the words: «Berta 30 and Anna 20» for «Anna 20 and Berta 30»."""
    for one, other in pairwise(statement.marks):
        first = [mark.number for mark in sentence.marks if one.same_value(mark)]
        second = [mark.number for mark in sentence.marks if other.same_value(mark)]
        if one.comparable(other) and first and second and max(second) < min(first):
            return True
    return False


def _mostly_held(statement: Sentence, window: Window, joints: int) -> bool:
    held = window.vocabulary
    return sum(term in held for term in statement.terms) + joints >= SAME_WORDS * len(statement.terms)


def _pivot(statement: Sentence, sentence: Sentence) -> tuple[str, str] | None:
    """A term whose two neighbours have changed places around it; of words, one at least must be a name."""
    first = {term: k for k, term in reversed(list(enumerate(sentence.terms)))}
    shared = [(term, first[term]) for term in dict.fromkeys(statement.terms) if term in first]
    names = statement.names | sentence.names
    for (left, a), (middle, b), (right, c) in zip(shared, shared[1:], shared[2:], strict=False):
        if a > b > c and (not middle.isascii() or left in names or right in names) and middle not in names:
            return f"{left} {middle} {right}", f"{right} {middle} {left}"
    return None


def _exchange(statement: Sentence, text: str, sentence: Sentence, source: str) -> tuple[str, str] | None:
    """Two names, or two words where names are not marked, that have changed places around all that stands between."""
    mine, theirs = Counter(statement.terms), Counter(sentence.terms)
    first = {term: k for k, term in enumerate(sentence.terms)}
    shared = [(k, term) for k, term in enumerate(statement.terms) if term in first]
    names = statement.names | sentence.names
    for at, (k, left) in enumerate(shared):
        low, high = len(first), -1
        if mine[left] > 1 or theirs[left] > 1 or (left.isascii() and left not in names):
            continue
        for stop, right in shared[at + 1 : at + 1 + SPAN]:
            c, a = first[right], first[left]
            if c > a:
                break
            if (
                high >= 0
                and c < low
                and high < a
                and mine[right] == theirs[right] == 1
                and (right in names or not right.isascii())
                and not _LISTED.search(text, statement.places[k], statement.places[stop])
                and not _LISTED.search(source, sentence.places[c], sentence.places[a])
            ):
                return f"{left} … {right}", f"{right} … {left}"
            low, high = min(low, c), max(high, c)
    return None
