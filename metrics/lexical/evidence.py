"""Which sentences of the contexts speak about a statement: weighted overlap, over sentences and neighbouring pairs."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.lexical.quantities import HALF_DAY, Quantity, agrees
from metrics.lexical.reading import Passage, Sentence
from metrics.lexical.words import stem

CANDIDATES = 4
"""Single sentences looked at closely, each also with its neighbours."""
NUMBER_WEIGHT = 1.0
"""Weight of a number among terms, whose weights are at most 1."""
COMMON = 2000
"""Sentences looked at for one term; a term of more tells nothing."""
MANY = 1000
"""Sentences of a request from which on their scores are added up in arrays: dearer for few, much cheaper for many."""
NUMBERS_NEAR = 200
"""Different values looked at for one that may have been rounded."""
PREFIX = 5
"""Letters that two different stems must share to count as half a match: nation and national."""
PARTIAL = 0.5


@dataclass(frozen=True, slots=True)
class Window:
    """One sentence or two neighbours of one text. `source` counts chunks, then user turns."""

    source: int
    sentences: tuple[Sentence, ...]
    coverage: float
    """Weighted share of the statement that the window holds, in [0, 1]."""

    @property
    def vocabulary(self) -> frozenset[str]:
        return frozenset().union(*(s.vocabulary for s in self.sentences))

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        return tuple(q for s in self.sentences for q in s.numbers)


class Index:
    """All sentences of one request, by term. Built once a request."""

    def __init__(self, passages: Sequence[Passage], prior: Mapping[str, float]) -> None:
        self.places: list[tuple[int, int]] = []
        self.sentences: list[Sentence] = []
        self.postings: dict[str, list[int]] = {}
        self.words: set[str] = set()
        self.prefixes: dict[str, set[str]] = {}
        self._numbers: dict[float, list[tuple[int, Quantity]]] = {}
        for source, passage in enumerate(passages):
            for k, sentence in enumerate(passage.sentences):
                at = len(self.sentences)
                self.places.append((source, k))
                self.sentences.append(sentence)
                for term in sentence.vocabulary:
                    self.postings.setdefault(term, []).append(at)
                self.words |= sentence.words
                for number in sentence.numbers:
                    for key in {number.value, number.value if number.figure is None else number.figure}:
                        self._numbers.setdefault(key, []).append((at, number))
        for term in self.postings:
            if len(term) >= PREFIX and term[0].isalpha():
                self.prefixes.setdefault(term[:PREFIX], set()).add(term)
        self._values = sorted(self._numbers)
        self._prior = prior
        self._scale = math.log(len(self.sentences) + 1.0) or 1.0
        # What several statements ask again: an answer of hundreds over a megabyte would take minutes without.
        self._found: dict[tuple[float, str, bool, float | None], frozenset[int]] = {}
        self._alike: dict[float, list[tuple[Quantity, frozenset[int]]]] = {}
        self._places: dict[str, npt.NDArray[np.intp]] = {}

    def weight(self, term: str) -> float:
        """How much a term tells, in (0, 1]: the shipped prior, lowered where many sentences here hold it."""
        held = len(self.postings.get(term, ()))
        here = math.log((len(self.sentences) + 1.0) / (held + 0.5)) / self._scale if held else 1.0
        return self._prior.get(term, 1.0) * (0.6 + 0.4 * min(here, 1.0)) + 0.02

    def rarity(self, word: str) -> float:
        """How rare a word is at large, in (0, 1]: the shipped prior alone."""
        found = self._prior.get(word)
        return found if found is not None else self._prior.get(stem(word), 1.0)

    def holders(self, said: Quantity) -> frozenset[int]:
        """Sentences that hold a quantity which agrees with what is said."""
        asked = (said.value, said.unit, said.approximate, said.figure)
        if (known := self._found.get(asked)) is not None:
            return known
        keys = [said.value, said.value - HALF_DAY, said.value + HALF_DAY]
        near = bisect_left(self._values, said.value / 2)
        keys += self._values[near : min(bisect_right(self._values, said.value * 2), near + NUMBERS_NEAR)]
        alike = (one for key in dict.fromkeys(keys) for one in self._alike_at(key))
        self._found[asked] = frozenset().union(*(places for found, places in alike if agrees(said, found)))
        return self._found[asked]

    def _alike_at(self, key: float) -> list[tuple[Quantity, frozenset[int]]]:
        """The quantities filed under `key`, those alike in value, unit and figure as one, with their places."""
        if (known := self._alike.get(key)) is not None:
            return known
        groups: dict[tuple[float, str, float | None], tuple[Quantity, set[int]]] = {}
        for at, found in self._numbers.get(key, ())[:COMMON]:
            groups.setdefault((found.value, found.unit, found.figure), (found, set()))[1].add(at)
        self._alike[key] = [(found, frozenset(places)) for found, places in groups.values()]
        return self._alike[key]

    def close(self, asked: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of the pairs of terms that some sentence holds in this order, within three terms of each other.

        One pass for all statements: pair by pair, the sentences of a common term would be read again and again.
        """
        wanted: dict[str, dict[str, int]] = {}
        for one, other in asked:
            first, second = self.postings.get(one), self.postings.get(other)
            if first and second:
                wanted.setdefault(one, {})[other] = min(first[:COMMON][-1], second[:COMMON][-1])
        found: set[tuple[str, str]] = set()
        for at, sentence in enumerate(self.sentences) if wanted else ():
            terms = sentence.terms
            for k, one in enumerate(terms):
                if (others := wanted.get(one)) is not None:
                    for other in terms[k + 1 : k + 4]:
                        if at <= others.get(other, -1):
                            found.add((one, other))
        return found

    def match(self, term: str) -> tuple[float, str | None]:
        """(1, the term) where some sentence holds it, (0.5, a relative) where one holds a word of the same root."""
        if term in self.postings:
            return 1.0, term
        if len(term) > PREFIX and term[0].isascii():
            relatives = self.prefixes.get(term[:PREFIX])
            if relatives:
                return PARTIAL, min(relatives, key=lambda other: (abs(len(other) - len(term)), other))
        return 0.0, None

    def windows(self, statement: Sentence, weights: Mapping[str, float]) -> list[Window]:
        """The best windows, best first; ties go to the earlier one, and one sentence beats two of equal coverage."""
        total = sum(weights.values()) + NUMBER_WEIGHT * len(statement.numbers)
        matches = ((weight, *self.match(term)) for term, weight in weights.items())
        held = [(share * weight, key) for weight, share, key in matches if key]
        best = (self._best_of_many if len(self.sentences) > MANY else self._best)(held, statement.numbers)
        if not best or not total:
            return []
        spans: set[tuple[int, ...]] = {(at,) for at in best}
        for at in best:
            spans |= {(at - 1, at)} if self._neighbours(at - 1, at) else set()
            spans |= {(at, at + 1)} if self._neighbours(at, at + 1) else set()
        holders = [self.holders(number) for number in statement.numbers]
        found = [self._window(span, held, holders, total) for span in sorted(spans)]
        found.sort(key=lambda window: (-window.coverage + 0.02 * len(window.sentences), window.source))
        return found

    def _best(self, held: Sequence[tuple[float, str]], numbers: Sequence[Quantity]) -> list[int]:
        """Sentences that hold most, best first."""
        scores: dict[int, float] = {}
        for weight, key in held:
            for at in self.postings[key][:COMMON]:
                scores[at] = scores.get(at, 0.0) + weight
        for number in numbers:
            for at in self.holders(number):
                scores[at] = scores.get(at, 0.0) + NUMBER_WEIGHT
        return heapq.nsmallest(CANDIDATES, scores, key=lambda at: (-scores[at], at))

    def _best_of_many(self, held: Sequence[tuple[float, str]], numbers: Sequence[Quantity]) -> list[int]:
        """The same sentences in arrays: the same additions in the same order, so the same scores."""
        scores = np.zeros(len(self.sentences))
        for weight, key in held:
            if key not in self._places:
                self._places[key] = np.array(self.postings[key][:COMMON], np.intp)
            scores[self._places[key]] += weight
        for number in numbers:
            scores[list(self.holders(number))] += NUMBER_WEIGHT
        lowest = np.partition(scores, -CANDIDATES)[-CANDIDATES]
        near = np.flatnonzero((scores >= lowest) & (scores > 0.0))
        return [int(at) for at in near[np.argsort(-scores[near], kind="stable")[:CANDIDATES]]]

    def _neighbours(self, one: int, other: int) -> bool:
        if one < 0 or other >= len(self.places) or self.places[one][0] != self.places[other][0]:
            return False
        return not (self.sentences[one].row and self.sentences[other].row)

    def _window(
        self,
        span: tuple[int, ...],
        held: Sequence[tuple[float, str]],
        holders: Sequence[frozenset[int]],
        total: float,
    ) -> Window:
        sentences = tuple(self.sentences[at] for at in span)
        vocabulary = sentences[0].vocabulary
        for other in sentences[1:]:
            vocabulary = vocabulary | other.vocabulary
        covered = sum(weight for weight, key in held if key in vocabulary)
        covered += NUMBER_WEIGHT * sum(not places.isdisjoint(span) for places in holders)
        return Window(self.places[span[0]][0], sentences, covered / total)
