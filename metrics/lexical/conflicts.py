"""Where a statement and a window of evidence about the same thing disagree, with the words for who reads the case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from metrics.lexical.evidence import Window
from metrics.lexical.quantities import Quantity, agrees, comparable
from metrics.lexical.reading import OPPOSITES, Sentence
from metrics.lexical.words import stem

NEAR, NEAR_WIDE = 25, 8
"""Characters around a spot that say what it is about."""
SHARED = 0.5
"""Share of the statement's terms that one sentence must hold for its negations to count."""
RIVALS = 2
"""Names of the evidence that may stand for one of the statement; among more nobody knows which."""
SHORTEST_BASE = 4
"""Letters of a stem that un- or non- may stand before: «unit» denies no «it»."""
SAME_WORDS = 0.8
"""Coverage from which another order of the same words is looked at."""


class Kind(StrEnum):
    NUMBER = "number"
    NEGATION = "negation"
    OPPOSITE = "opposite"
    ORDER = "order"
    NAME = "name"
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


_NUMBERED = re.compile(r"\d{1,2}[.)]? +[A-Z][a-z]")


def conflicts(statement: Sentence, text: str, window: Window, source: str) -> list[Conflict]:
    """All disagreements; `text` and `source` are the texts that statement and window were read from."""
    found = list(_numbers(statement, text, window, source))
    found += _negations(statement, window)
    found += _denials(statement, text, window, source)
    found += _opposites(statement, window)
    found += _swapped(statement, window)
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
            if (
                rival
                and q not in sentence.denied
                and not _numbering(source, sentence, q)
                and not any(agrees(mine, q) for mine in statement.numbers)
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


def _words(text: str, sentence: Sentence, quantity: Quantity) -> str:
    return text[sentence.start + quantity.start : sentence.start + quantity.end].strip()


def other_name(absent: Sequence[str], window: Window, statement: Sentence) -> Iterator[Conflict]:
    """A name that no context holds, where the evidence names somebody or something else."""
    there = dict.fromkeys(term for s in window.sentences for term in s.terms if term in s.names)
    rivals = [name for name in there if name not in statement.vocabulary]
    initials = "".join(name[0] for name in there)
    for name in absent:
        if 0 < len(rivals) <= RIVALS and name not in initials:
            yield Conflict(Kind.NAME, name, " / ".join(rivals), terms=(name,))


def _negations(statement: Sentence, window: Window) -> Iterator[Conflict]:
    for sentence in window.sentences:
        shared = statement.vocabulary & sentence.vocabulary
        if len(shared) < SHARED * len(statement.vocabulary):
            continue
        shared -= statement.supposed ^ sentence.supposed  # «if it does not fit» says nothing of what fits
        for head in sorted(statement.heads & shared):
            if head not in sentence.negated and head not in statement.plain:
                yield Conflict(Kind.NEGATION, f"not {head}", head)
        for head in sorted(sentence.heads & shared):
            if head not in statement.negated and head not in sentence.plain:
                yield Conflict(Kind.NEGATION, head, f"not {head}")


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


def _swapped(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """«A acquired B» against «B acquired A», «from A to B» against «from B to A», «A before B» against «B before A»."""
    if window.coverage < SAME_WORDS:
        return
    for sentence in window.sentences:
        mine, theirs = dict(statement.roles), dict(sentence.roles)
        for role in sorted(mine.keys() & theirs.keys()):
            if [r for r, _ in statement.roles].count(role) + [r for r, _ in sentence.roles].count(role) > 2:
                continue
            at, there = mine[role], theirs[role]
            term, other = statement.terms[at], sentence.terms[there]
            if term != other and term in sentence.terms[:there] and other in statement.terms[:at]:
                yield Conflict(Kind.ORDER, f"{role} {term}", f"{role} {other}")
        if statement.passive == sentence.passive and (found := _pivot(statement, sentence)):
            yield Conflict(Kind.ORDER, *found)


def _pivot(statement: Sentence, sentence: Sentence) -> tuple[str, str] | None:
    """A term whose two neighbours have changed places around it; of words, one at least must be a name."""
    first = {term: k for k, term in reversed(list(enumerate(sentence.terms)))}
    shared = [(term, first[term]) for term in dict.fromkeys(statement.terms) if term in first]
    names = statement.names | sentence.names
    for (left, a), (middle, b), (right, c) in zip(shared, shared[1:], shared[2:], strict=False):
        if a > b > c and (not middle.isascii() or left in names or right in names) and middle not in names:
            return f"{left} {middle} {right}", f"{right} {middle} {left}"
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
