"""Where a statement and a window of evidence about the same thing disagree, each with the words for the person who asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from metrics.lexical.evidence import Window
from metrics.lexical.quantities import Quantity, agrees, comparable
from metrics.lexical.reading import OPPOSITES, Sentence


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


def conflicts(statement: Sentence, text: str, window: Window, source: str) -> list[Conflict]:
    """All disagreements; `text` and `source` are the texts that statement and window were read from."""
    found = list(_numbers(statement, text, window, source))
    found += _negations(statement, window)
    found += _opposites(statement, window)
    found += _swapped(statement, window)
    if not any(conflict.kind is Kind.NUMBER for conflict in found):
        found += _substitutions(statement, window)
    return found


def _numbers(statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    there = [(s, q) for s in window.sentences for q in s.numbers]
    for said in statement.numbers:
        if any(agrees(said, q) for _, q in there):
            continue
        rivals = [
            (s, q) for s, q in there if comparable(said, q) and not any(agrees(mine, q) for mine in statement.numbers)
        ]
        same_value = [
            (s, q) for s, q in there if said.figure is not None and q.figure == said.figure and said.unit and q.unit
        ]
        if rivals or same_value:
            s, q = (rivals or same_value)[0]
            yield Conflict(Kind.NUMBER, _words(text, statement, said), _words(source, s, q))


def _words(text: str, sentence: Sentence, quantity: Quantity) -> str:
    return text[sentence.start + quantity.start : sentence.start + quantity.end].strip()


def other_name(absent: Sequence[str], window: Window, statement: Sentence) -> Iterator[Conflict]:
    """A name that no context holds, where the evidence names somebody or something else."""
    rivals = sorted({n for s in window.sentences for n in s.names} - statement.vocabulary)
    if rivals:
        for name in absent:
            yield Conflict(Kind.NAME, name, " / ".join(rivals[:3]), terms=(name,))


def _negations(statement: Sentence, window: Window) -> Iterator[Conflict]:
    for sentence in window.sentences:
        for head in statement.heads:
            if head in sentence.plain and head not in sentence.negated and head not in statement.plain:
                yield Conflict(Kind.NEGATION, f"not {head}", head)
        for head in sentence.heads:
            if head in statement.plain and head not in statement.negated and head not in sentence.plain:
                yield Conflict(Kind.NEGATION, head, f"not {head}")


def _opposites(statement: Sentence, window: Window) -> Iterator[Conflict]:
    for sentence in window.sentences:
        theirs = dict(sentence.poles)
        mine = dict(statement.poles)
        for word, negated in mine.items():
            if word in theirs:
                continue
            for other in OPPOSITES[word]:
                if other in theirs and other not in mine and theirs[other] == negated:
                    yield Conflict(Kind.OPPOSITE, word, other, terms=(word,))
        for term in statement.vocabulary - sentence.vocabulary:
            for prefix in ("un", "in", "im", "non", "dis", "ir", "il"):
                if term.startswith(prefix) and term[len(prefix) :] in sentence.plain:
                    yield Conflict(Kind.OPPOSITE, term, term[len(prefix) :], terms=(term,))
        for term in sentence.vocabulary - statement.vocabulary:
            for prefix in ("un", "in", "im", "non", "dis", "ir", "il"):
                if term.startswith(prefix) and term[len(prefix) :] in statement.plain:
                    yield Conflict(Kind.OPPOSITE, term[len(prefix) :], term)


def _swapped(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """«A acquired B» against «B acquired A», «from A to B» against «from B to A», «A before B» against «B before A»."""
    if window.coverage < SAME_WORDS:
        return
    for sentence in window.sentences:
        for role, at in statement.roles:
            for same, there in sentence.roles:
                term, other = statement.terms[at], sentence.terms[there]
                if role == same and term in sentence.terms[:there] and other in statement.terms[:at] and term != other:
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
    """Something else stands in the evidence where the statement says something of its own, between the same neighbours."""
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
