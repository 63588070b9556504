"""A conflict between a statement and the evidence, its kinds, and what all of them are found with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from metrics.lexical.bounds import Mark
from metrics.lexical.evidence import Window
from metrics.lexical.quantities import Quantity
from metrics.lexical.reading import Sentence

NEAR, NEAR_WIDE = 25, 8
"""Characters around a spot that say what it is about."""
_FUNCTION = frozenset("从由自到至在有比给向往")
"""Characters of no meaning of their own that another order of the same words may need."""
SHARED = 0.5
"""Share of the statement's terms that one sentence must hold for its negations to count."""


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


def same_place(statement: Sentence, at: int, sentence: Sentence, there: int) -> bool:
    """Whether two spots are about the same thing: a term of the one's surroundings stands near the other."""
    wide = bool(statement.terms) and not statement.terms[0].isascii()
    near = statement.around(at, NEAR_WIDE if wide else NEAR)
    return not near or not near.isdisjoint(sentence.around(there, 2 * NEAR_WIDE if wide else 2 * NEAR))


def words_of(text: str, sentence: Sentence, quantity: Quantity | Mark) -> str:
    return text[sentence.start + quantity.start : sentence.start + quantity.end].strip()


def joints_of(statement: Sentence, window: Window) -> tuple[str, ...]:
    """Pairs of characters that only another order of known ones makes: 李高 of «小王比小李高», for «小李比小王高»."""
    if all(map(str.isascii, statement.terms)):
        return ()
    held = window.vocabulary
    known = _FUNCTION.union(*(term for term in held if not term.isascii()))
    return tuple(term for term in statement.terms if not term.isascii() and term not in held and known.issuperset(term))
