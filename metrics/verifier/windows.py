"""Windows of neighbouring sentences that fit the verifier, and which of them a statement is held against.

Every sentence of every context lies in a window, whatever the length; neighbouring windows share a sentence, so that
what two sentences say together is seen together somewhere.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.lexical.evidence import NUMBER_WEIGHT, Index
from metrics.lexical.quantities import agrees
from metrics.lexical.reading import Passage, Sentence

SIZE = 112
"""Tokens of a window. A longer sentence is a window of its own, cut where it does not fit the network."""
Span = tuple[int, int]
Lengths = Callable[[Sequence[str]], list[int]]
"""Tokens of each text."""


@dataclass(frozen=True, slots=True)
class Window:
    """Characters [start, end) of a text: the sentences [first, last) of its reading."""

    start: int
    end: int
    first: int
    last: int


def windows_of(text: str, sentences: Sequence[Span], lengths: Lengths, size: int = SIZE) -> list[Window]:
    """Windows of at most `size` tokens over all sentences (spans) of a text, in order, neighbours sharing one sentence.

    A sentence of more than `size` tokens is split into pieces, each a window of its own.
    """
    counts = lengths([text[start:end] for start, end in sentences])
    found: list[Window] = []
    first = 0
    while first < len(sentences):
        last, used = first + 1, counts[first]
        if used > size:
            pieces = _split(text, *sentences[first], lengths, size)
            found += [Window(start, end, first, first + 1) for start, end in pieces]
            first += 1
            continue
        while last < len(sentences) and used + counts[last] <= size:
            used += counts[last]
            last += 1
        found.append(Window(sentences[first][0], sentences[last - 1][1], first, last))
        if last >= len(sentences):
            break
        # One sentence back, unless that would not get on.
        shared = last - 1 if last - 1 > first and counts[last - 1] + counts[last] <= size else last
        first = shared
    return found


def _split(text: str, start: int, end: int, lengths: Lengths, size: int) -> list[Span]:
    """Halves until they fit, at a blank or a comma near the middle where there is one."""
    if lengths([text[start:end]])[0] <= size or end - start < 2:
        return [(start, end)]
    middle = (start + end) // 2
    reach = (end - start) // 4
    cuts = [text.rfind(mark, middle - reach, middle + reach) for mark in (" ", ",", "，", "、", "\n")]
    at = max(cuts) + 1 if max(cuts) > start else middle
    return _split(text, start, at, lengths, size) + _split(text, at, end, lengths, size)


@dataclass(frozen=True, slots=True)
class Placed:
    """A window of one source of a request. `sentences` are those that it holds."""

    source: int
    window: Window
    sentences: tuple[Sentence, ...]

    @property
    def vocabulary(self) -> frozenset[str]:
        return frozenset().union(*(s.vocabulary for s in self.sentences))


def placed_windows(
    sources: Sequence[str],
    passages: Sequence[Passage],
    cut: Callable[[str, tuple[Span, ...]], Sequence[Window]],
) -> list[Placed]:
    """The windows of all sources of a request, in order. `cut`: those of a text by the spans of its sentences."""
    return [
        Placed(source, window, passage.sentences[window.first : window.last])
        for source, (text, passage) in enumerate(zip(sources, passages, strict=True))
        for window in cut(text, tuple((s.start, s.end) for s in passage.sentences))
    ]


def coverages(statement: Sentence, index: Index, windows: Sequence[Placed]) -> list[float]:
    """Weighted share of the statement's terms and numbers that each window holds, in [0, 1]."""
    weights = {term: index.weight(term) for term in dict.fromkeys(statement.terms)}
    keys = [(index.match(term), weight) for term, weight in weights.items()]
    total = sum(weights.values()) + NUMBER_WEIGHT * len(statement.numbers)
    if not total:
        return [0.0] * len(windows)
    found = []
    for placed in windows:
        held = placed.vocabulary
        covered = sum(share * weight for (share, key), weight in keys if key in held)
        numbers = [q for s in placed.sentences for q in s.numbers]
        covered += NUMBER_WEIGHT * sum(any(agrees(said, q) for q in numbers) for said in statement.numbers)
        found.append(covered / total)
    return found


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which windows a statement is held against.

    Up to `few` windows are all looked at. Of more: the best by weighted words, and those that hold hardly less of the
    statement (`margin` in coverage), `by_words` in all; where there are more than `many`, also the `by_vectors` most
    similar ones. A statement in other words than its evidence is hardly covered anywhere, so that its margin is wide.
    """

    few: int = 2
    by_words: int = 2
    margin: float = 0.2
    many: int = 12
    by_vectors: int = 2


def chosen(
    covered: Sequence[float], similar: npt.NDArray[np.float64] | None = None, narrowing: Narrowing | None = None
) -> list[int]:
    """The windows to hold a statement against, best covered first. `similar`: of every window to the statement.

    >>> chosen([0.1, 0.9, 0.2, 0.8])
    [1, 3]
    """
    rule = narrowing or Narrowing()
    order = sorted(range(len(covered)), key=lambda k: (-covered[k], k))
    if len(order) <= rule.few:
        return order
    best = covered[order[0]]
    wanted = [k for k in order if covered[k] >= best - rule.margin][: rule.by_words]
    if similar is not None and len(order) > rule.many:
        near = heapq.nlargest(rule.by_vectors, range(len(covered)), key=lambda k: float(similar[k]))
        wanted += [k for k in near if k not in wanted]
    return wanted
