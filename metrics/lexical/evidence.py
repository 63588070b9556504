"""Which sentences of the contexts speak about a statement: weighted overlap, over single sentences and neighbouring pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metrics.lexical.quantities import Quantity, agrees
from metrics.lexical.reading import Passage, Sentence
from metrics.lexical.words import stem

CANDIDATES = 4
"""Single sentences looked at closely, each also with its neighbours."""
NUMBER_WEIGHT = 1.0
"""Weight of a number among terms, whose weights are at most 1."""
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
        self.numbers: list[tuple[int, Quantity]] = []
        for source, passage in enumerate(passages):
            for k, sentence in enumerate(passage.sentences):
                at = len(self.sentences)
                self.places.append((source, k))
                self.sentences.append(sentence)
                for term in sentence.vocabulary:
                    self.postings.setdefault(term, []).append(at)
                self.words |= sentence.words
                for number in sentence.numbers:
                    self.numbers.append((at, number))
        for term in self.postings:
            if len(term) >= PREFIX and term[0].isalpha():
                self.prefixes.setdefault(term[:PREFIX], set()).add(term)
        self._prior = prior
        self._scale = math.log(len(self.sentences) + 1.0) or 1.0

    def weight(self, term: str) -> float:
        """How much a term tells, in (0, 1]: the shipped prior, lowered where many sentences here hold it."""
        held = len(self.postings.get(term, ()))
        here = math.log((len(self.sentences) + 1.0) / (held + 0.5)) / self._scale if held else 1.0
        return self._prior.get(term, 1.0) * (0.6 + 0.4 * min(here, 1.0)) + 0.02

    def rarity(self, word: str) -> float:
        """How rare a word is at large, in (0, 1]: the shipped prior alone."""
        found = self._prior.get(word)
        return found if found is not None else self._prior.get(stem(word), 1.0)

    def close(self, one: str, other: str) -> bool:
        """Whether some sentence holds the terms in this order, within three terms of each other."""
        first, second = self.postings.get(one), self.postings.get(other)
        if not first or not second:
            return False
        for at in set(first).intersection(second):
            terms = self.sentences[at].terms
            for k, term in enumerate(terms):
                if term == one and other in terms[k + 1 : k + 4]:
                    return True
        return False

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
        scores = self._scores(statement, weights)
        total = sum(weights.values()) + NUMBER_WEIGHT * len(statement.numbers)
        if not scores or not total:
            return []
        best = sorted(scores, key=lambda at: (-scores[at], at))[:CANDIDATES]
        spans: set[tuple[int, ...]] = {(at,) for at in best}
        for at in best:
            spans |= {(at - 1, at)} if self._neighbours(at - 1, at) else set()
            spans |= {(at, at + 1)} if self._neighbours(at, at + 1) else set()
        found = [self._window(span, statement, weights, total) for span in sorted(spans)]
        found.sort(key=lambda window: (-window.coverage + 0.02 * len(window.sentences), window.source))
        return found

    def _scores(self, statement: Sentence, weights: Mapping[str, float]) -> dict[int, float]:
        scores: dict[int, float] = {}
        for term, weight in weights.items():
            share, key = self.match(term)
            for at in self.postings[key] if key else ():
                scores[at] = scores.get(at, 0.0) + share * weight
        for number in statement.numbers:
            for at in {at for at, found in self.numbers if agrees(number, found)}:
                scores[at] = scores.get(at, 0.0) + NUMBER_WEIGHT
        return scores

    def _neighbours(self, one: int, other: int) -> bool:
        return one >= 0 and other < len(self.places) and self.places[one][0] == self.places[other][0]

    def _window(self, span: tuple[int, ...], statement: Sentence, weights: Mapping[str, float], total: float) -> Window:
        sentences = tuple(self.sentences[at] for at in span)
        held = 0.0
        for term, weight in weights.items():
            share, key = self.match(term)
            if key and any(key in s.vocabulary for s in sentences):
                held += share * weight
        numbers = [q for s in sentences for q in s.numbers]
        held += NUMBER_WEIGHT * sum(any(agrees(said, found) for found in numbers) for said in statement.numbers)
        return Window(self.places[span[0]][0], sentences, held / total)
