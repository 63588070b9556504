"""Where a statement and a window of evidence about the same thing disagree, with the words for who reads the case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from metrics.lexical.bounds import Mark
from metrics.lexical.chinese_names import Name, others_in_place
from metrics.lexical.evidence import Window
from metrics.lexical.quantities import Quantity, agrees, comparable
from metrics.lexical.reading import OPPOSITES, Sentence
from metrics.lexical.words import fold, stem, word_lists

NEAR, NEAR_WIDE = 25, 8
"""Characters around a spot that say what it is about."""
SHARED = 0.5
"""Share of the statement's terms that one sentence must hold for its negations to count."""
RIVALS = 2
"""Names of the evidence that may stand for one of the statement; among more nobody knows which."""
SHORTEST_BASE = 4
"""Letters of a stem that un- or non- may stand before: «unit» denies no «it»."""
MOST_MARKS = 8
"""Quantities of a statement that are looked at for changed places."""
SPAN = 12
"""Terms within which two that have changed places are looked for."""
SAME_WORDS = 0.8
"""Coverage from which another order of the same words is looked at."""


class Kind(StrEnum):
    NUMBER = "number"
    NEGATION = "negation"
    OPPOSITE = "opposite"
    ORDER = "order"
    NAME = "name"
    NAME_IN_PLACE = "name_in_place"
    """Another name between the same neighbours, where names are known by their form: surname or list."""
    SUBSTITUTION = "substitution"


@dataclass(frozen=True, slots=True)
class Conflict:
    """`said` in the statement stands against `found` in the evidence; `strength` in [0, 1]."""

    kind: Kind
    said: str
    found: str
    strength: float = 1.0
    terms: tuple[str, ...] = ()
    """Terms of the statement that the conflict is about."""


_LISTED = re.compile("[,;:.、，；：。]")
_NUMBERED = re.compile(r"\d{1,2}[.)]? +[A-Z][a-z]")


_OTHER_ROLE = {
    role: other
    for pair in map(str.split, word_lists()["relations"]["opposite_roles"])
    for role, other in (pair, reversed(pair))
}


def conflicts(statement: Sentence, text: str, window: Window, source: str) -> list[Conflict]:
    """All disagreements; `text` and `source` are the texts that statement and window were read from."""
    found = list(_numbers(statement, text, window, source))
    found += _negations(statement, window)
    found += _denials(statement, text, window, source)
    found += _opposites(statement, window)
    found += _opposite_roles(statement, window)
    found += _bounds(statement, text, window, source)
    found += _changed_places(statement, text, window, source)
    found += _swapped(statement, text, window, source)
    if not any(conflict.kind is Kind.NUMBER for conflict in found):
        found += _substitutions(statement, window)
    return found


def _numbers(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    there = [(s, q) for s in window.sentences for q in s.numbers]
    for said in statement.numbers:
        if said in statement.denied or any(agrees(said, q) for _, q in there):
            continue
        for sentence, q in there:
            rival = comparable(said, q) or (
                said.figure is not None and said.figure == q.figure and said.unit and q.unit
            )
            taken = any(agrees(mine, q) for mine in statement.numbers)
            if (
                rival
                and not taken
                and q not in sentence.denied
                and not _numbering(source, sentence, q)
                and _same_place(statement, said.start, sentence, q.start)
            ):
                yield Conflict(Kind.NUMBER, _words(text, statement, said), _words(source, sentence, q))
                break


def _numbering(source: str, sentence: Sentence, quantity: Quantity) -> bool:
    """Whether a number only counts the lines or the notes of a text: «1 Preheat the oven», «as shown [3]»."""
    start, end = sentence.start + quantity.start, sentence.start + quantity.end
    if source[max(start - 1, 0) : start] == "[" and source[end : end + 1] == "]":
        return True
    return quantity.start == 0 and _NUMBERED.match(source, start) is not None


def _same_place(statement: Sentence, at: int, sentence: Sentence, there: int) -> bool:
    """Whether two spots are about the same thing: a term of the one's surroundings stands near the other."""
    wide = bool(statement.terms) and not statement.terms[0].isascii()
    near = statement.around(at, NEAR_WIDE if wide else NEAR)
    return not near or not near.isdisjoint(sentence.around(there, 2 * NEAR_WIDE if wide else 2 * NEAR))


def _words(text: str, sentence: Sentence, quantity: Quantity | Mark) -> str:
    return text[sentence.start + quantity.start : sentence.start + quantity.end].strip()


def other_name(absent: Sequence[str], window: Window, statement: Sentence) -> Iterator[Conflict]:
    """A name that no context holds, where the evidence names somebody or something else."""
    there = dict.fromkeys(term for s in window.sentences for term in s.terms if term in s.names)
    rivals = [name for name in there if name not in statement.vocabulary]
    initials = "".join(name[0] for name in there)
    for name in absent:
        if 0 < len(rivals) <= RIVALS and name not in initials:
            yield Conflict(Kind.NAME, name, " / ".join(rivals), terms=(name,))


def name_in_place(names: list[Name], statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """A Chinese name that no context holds, where the evidence has another one between the same characters."""
    folded = fold(text) if names else ""
    for sentence in window.sentences if names else ():
        for name, other in others_in_place(names, folded, fold(source[sentence.start : sentence.end])):
            own = (
                t for t, at in zip(statement.terms, statement.places, strict=True) if name.start - 1 <= at < name.end
            )
            yield Conflict(Kind.NAME_IN_PLACE, name.text, other, terms=tuple(own))


def _negations(statement: Sentence, window: Window) -> Iterator[Conflict]:
    for sentence in window.sentences:
        shared = statement.vocabulary & sentence.vocabulary
        if len(shared) < SHARED * len(statement.vocabulary):
            continue
        shared -= statement.supposed ^ sentence.supposed  # «if it does not fit» says nothing of what fits
        for head in _unshared(statement, sentence, shared):
            yield Conflict(Kind.NEGATION, f"not {head}", head)
        for head in _unshared(sentence, statement, shared):
            yield Conflict(Kind.NEGATION, head, f"not {head}")


def _unshared(one: Sentence, other: Sentence, shared: frozenset[str]) -> Iterator[str]:
    """What `one` denies and `other` says, where `other` denies nothing that the same negator may deny."""
    for head, *others in one.heads:
        if head in shared and head not in one.plain and other.negated.isdisjoint([head, *others]):
            yield head


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
            mine, other = _words(text, statement, said), _words(source, sentence, found)
            yield Conflict(Kind.NEGATION, f"not {mine}" if denied else mine, other if denied else f"not {other}")


def _opposites(statement: Sentence, window: Window) -> Iterator[Conflict]:
    mine = {word for word, _, _ in statement.poles}
    for sentence in window.sentences:
        theirs = {word for word, _, _ in sentence.poles}
        for word, negated, at in statement.poles:
            if word in theirs:
                continue
            for other, other_negated, there in sentence.poles:
                if other not in OPPOSITES[word] or other in mine or other_negated != negated:
                    continue
                if _same_place(statement, at, sentence, there):
                    yield Conflict(Kind.OPPOSITE, word, other, terms=(word, stem(word)))
        for term, base in _denied_by_prefix(statement, sentence):
            if term not in window.vocabulary:
                yield Conflict(Kind.OPPOSITE, term, base, terms=(term,))
        for term, base in _denied_by_prefix(sentence, statement):
            yield Conflict(Kind.OPPOSITE, base, term)


def _opposite_roles(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """«Before noon» against «after noon»: such words stand among stop words and count before the same term only."""
    mine = {(role, statement.terms[at]) for role, at in statement.roles}
    there = {(role, s.terms[at]) for s in window.sentences for role, at in s.roles}
    for role, term in sorted(mine - there):
        other = _OTHER_ROLE.get(role)
        if other and (other, term) in there and (other, term) not in mine:
            yield Conflict(Kind.OPPOSITE, f"{role} {term}", f"{other} {term}")


def _bounds(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«More than 5 kg» against «less than 5 kg», «before 15 June» against «after 15 June»."""
    least = SHARED * len(statement.vocabulary)
    near = [s for s in window.sentences if len(statement.vocabulary & s.vocabulary) >= least]
    for said in statement.marks:
        there = [(s, mark) for s in near for mark in s.marks if said.same_quantity(mark)]
        rivals = [(s, mark) for s, mark in there if said.against(mark) and s.negations % 2 == statement.negations % 2]
        if rivals and len(rivals) == len(there):
            sentence, found = rivals[0]
            if _same_place(statement, said.start, sentence, found.start):
                low, high = statement.start + said.start, statement.start + said.end
                own = tuple(t for t, at in zip(statement.terms, statement.places, strict=True) if low <= at < high)
                mine, other = _words(text, statement, said), _words(source, sentence, found)
                yield Conflict(Kind.OPPOSITE, mine, other, terms=own)


def _changed_places(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«From 30 to 20» against «from 20 to 30»; «5 in May and 7 in June» against «7 in May and 5 in June»."""
    for one, other in combinations(statement.marks[:MOST_MARKS], 2):
        if not one.comparable(other) or one.same_quantity(other):
            continue
        turned: list[tuple[Sentence, Mark, Mark]] = []
        for sentence in window.sentences:
            first = [mark for mark in sentence.marks if one.same_quantity(mark)]
            second = [mark for mark in sentence.marks if other.same_quantity(mark)]
            if len(first) == len(second) == 1 and first[0] is not second[0]:
                pair = first[0], second[0]
                if _turned(statement, one, other, sentence, *pair):
                    turned.append((sentence, *pair))
                else:
                    turned = []
                    break
        for sentence, a, b in turned[:1]:
            said = f"{_words(text, statement, one)} … {_words(text, statement, other)}"
            found = f"{_words(source, sentence, b)} … {_words(source, sentence, a)}"
            yield Conflict(Kind.ORDER, said, found)


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


def _denied_by_prefix(one: Sentence, other: Sentence) -> Iterator[tuple[str, str]]:
    """Terms of `one` alone whose base `other` says: unsafe against safe. Who says both contrasts them himself."""
    for term in sorted(one.vocabulary - other.vocabulary):
        for base in _bases(term):
            if base in other.plain and base not in one.vocabulary and "non" not in other.words:
                yield term, base


_PREFIXES = ("un", "in", "im", "non", "dis", "ir", "il")


def _bases(term: str) -> Iterator[str]:
    """safe of unsafe."""
    if term.startswith(_PREFIXES):
        bases = (term[len(prefix) :] for prefix in _PREFIXES if term.startswith(prefix))
        yield from (base for base in bases if len(base) >= SHORTEST_BASE)


def _swapped(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """«A acquired B» against «B acquired A», «from A to B» against «from B to A», «A before B» against «B before A»."""
    joints = _joints(statement, window)
    held = sum(term in window.vocabulary for term in statement.terms) + len(joints)
    if window.coverage < SAME_WORDS and not (joints and held >= SAME_WORDS * len(statement.terms)):
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
        if statement.passive == sentence.passive:
            found = _pivot(statement, sentence) or _exchange(statement, text, sentence, source)
            if found:
                yield Conflict(Kind.ORDER, *found, terms=joints)


def _joints(statement: Sentence, window: Window) -> tuple[str, ...]:
    """Pairs of characters that only another order of known ones makes: 李高 of «小王比小李高», for «小李比小王高»."""
    known = frozenset().union(*(term for term in window.vocabulary if not term.isascii()))
    return tuple(
        term
        for term in statement.terms
        if not term.isascii() and term not in window.vocabulary and known.issuperset(term)
    )


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


def _substitutions(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """Something else stands in the evidence where the statement has words of its own, between the same neighbours."""
    for sentence in window.sentences:
        positions: dict[str, int] = {}
        for k, term in enumerate(sentence.terms):
            positions.setdefault(term, k)
        mine = statement.terms
        k = 0
        while k < len(mine):
            if mine[k] in positions:
                k += 1
                continue
            stop = k
            while stop < len(mine) and mine[stop] not in positions:
                stop += 1
            left = positions[mine[k - 1]] if k else -1
            right = positions[mine[stop]] if stop < len(mine) else len(sentence.terms)
            between = sentence.terms[left + 1 : right]
            flanks = (k > 0) + (stop < len(mine))
            if (
                flanks
                and 0 < len(between) <= stop - k + 2
                and stop - k <= 5
                and not statement.vocabulary & set(between)
            ):
                named = bool(statement.names & set(mine[k:stop])) or bool(sentence.names & set(between))
                yield Conflict(
                    Kind.SUBSTITUTION,
                    joined(mine[k:stop]),
                    joined(between),
                    (0.5 + 0.5 * named) * flanks / 2,
                    mine[k:stop],
                )
            k = stop


def joined(terms: tuple[str, ...]) -> str:
    """Terms as one readable piece: overlapping pairs of characters grow together.

    >>> joined(("退款", "款期", "期限")), joined(("red", "car"))
    ('退款期限', 'red car')
    """
    text = ""
    for term in terms:
        if text and len(term) == 2 and not term.isascii() and text[-1] == term[0]:
            text += term[1]
        else:
            text += (" " if text and term.isascii() else "") + term
    return text
