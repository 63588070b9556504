"""Statements held against windows of their contexts: cut, narrow, ask a network, and give every reading back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metrics.language import UNSPACED
from metrics.lexical.evidence import Index
from metrics.lexical.reading import Passage, Sentence
from metrics.metric import Text, Vector
from metrics.outcome import Unscored
from metrics.verifier.windows import (
    SIZE,
    Narrowing,
    Placed,
    Span,
    Window,
    chosen,
    coverages,
    placed_windows,
    windows_of,
)

CHUNKS_KEPT = 1024
SHORT, SHORT_WIDE = 5, 10
"""Words (characters in scripts without spaces) up to which a statement means little without its question."""

Embed = Callable[[Sequence[Text]], Sequence[Vector | Unscored]]


Asked = tuple[str, Sequence[str]]
"""A premise, and statements about it."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a network says of a statement and a premise. `classes`: probabilities of supported, not_found, contradicted.
    `marks`: probability that a token is unsupported, one for each token; empty where the network marks nothing."""

    classes: tuple[float, float, float]
    marks: npt.NDArray[np.float32]


class Opinions(Protocol):
    """A network that judges statements by one premise."""

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        ...

    def opinions(self, asked: Sequence[Asked]) -> list[list[Opinion]]:
        """One opinion a statement, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """A statement against one window. `classes`: probabilities of supported, not_found, contradicted. `coverage`: of
    its words by the window, in [0, 1]. `marks`: probability that a token is unsupported, one for each token."""

    placed: Placed
    coverage: float
    classes: tuple[float, float, float]
    marks: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the reader: the sources of one answer, as read, and its statements."""

    sources: Sequence[str]
    passages: Sequence[Passage]
    index: Index
    statements: Sequence[Sentence]
    texts: Sequence[str]
    """The statements as the network is to read them."""


def in_the_light_of(question: str | None, statement: str) -> str:
    """A short statement with its question in front: «30 days.» says nothing, «How long is it valid? 30 days.» does.

    >>> in_the_light_of("How long is it valid?", "30 days.")
    'How long is it valid? 30 days.'
    """
    wide = len(_WIDE.findall(statement))
    short = wide <= SHORT_WIDE if wide > len(statement) / 2 else len(statement.split()) <= SHORT
    return f"{question.strip()} {statement}" if question and question.strip() and short else statement


_WIDE = re.compile(f"[{UNSPACED}]")


class Reader:
    """Any network over windows. Not safe for several threads at once."""

    def __init__(
        self, network: Opinions, embed: Embed | None = None, size: int = SIZE, narrowing: Narrowing | None = None
    ) -> None:
        """`embed` finds similar windows where there are many; without it, words alone choose. `size`: of a window."""
        self.network = network
        self._embed, self._size = embed, size
        self._narrowing = narrowing or Narrowing()
        self._kept: Callable[[str, tuple[Span, ...]], tuple[Window, ...]] = lru_cache(maxsize=CHUNKS_KEPT)(self._cut)

    def read(self, questions: Sequence[Question]) -> list[list[list[Held]]]:
        """For every question, for every statement: its readings, best covered window first."""
        plans = [self._plan(question) for question in questions]
        asked: list[Asked] = []
        whose: list[tuple[int, int, list[int]]] = []
        for q, (question, plan) in enumerate(zip(questions, plans, strict=True)):
            for w, placed in enumerate(plan.windows):
                own = [k for k, choice in enumerate(plan.chosen) if w in choice]
                if own:
                    text = question.sources[placed.source][placed.window.start : placed.window.end]
                    asked.append((" ".join(text.split()), [question.texts[k] for k in own]))
                    whose.append((q, w, own))
        said: dict[tuple[int, int, int], Opinion] = {}
        for (q, w, own), opinions in zip(whose, self.network.opinions(asked), strict=True):
            said |= {(q, w, k): opinion for k, opinion in zip(own, opinions, strict=True)}
        return [
            [
                [_held(plan.windows[w], plan.covered[k][w], said[q, w, k]) for w in choice]
                for k, choice in enumerate(plan.chosen)
            ]
            for q, plan in enumerate(plans)
        ]

    def _plan(self, question: Question) -> _Plan:
        """The windows of a question's sources, and which of them each statement is held against."""
        windows = placed_windows(question.sources, question.passages, self._kept)
        covered = [coverages(statement, question.index, windows) for statement in question.statements]
        similar = self._similar(question, windows)
        picked = [chosen(c, None if similar is None else similar[k], self._narrowing) for k, c in enumerate(covered)]
        return _Plan(windows, covered, picked)

    def _cut(self, text: str, spans: tuple[Span, ...]) -> tuple[Window, ...]:
        return tuple(windows_of(text, spans, self.network.lengths, self._size))

    def _similar(self, question: Question, windows: Sequence[Placed]) -> npt.NDArray[np.float64] | None:
        """Cosines (statements, windows); None where nothing is to be chosen or a vector is missing."""
        if self._embed is None or len(windows) <= self._narrowing.many or not question.texts:
            return None
        texts = [Text("passage", question.sources[p.source][p.window.start : p.window.end]) for p in windows]
        vectors = self._embed([*(Text("query", t) for t in question.texts), *texts])
        arrays = [np.asarray(v, np.float64) for v in vectors if not isinstance(v, Unscored)]
        if len(arrays) < len(vectors):
            return None
        matrix = np.stack(arrays)
        count = len(question.texts)
        return np.asarray(matrix[:count] @ matrix[count:].T)


@dataclass(frozen=True, slots=True)
class _Plan:
    """`covered[k][w]`: share of statement k's words in window w; `chosen[k]`: the windows that k is held against."""

    windows: Sequence[Placed]
    covered: Sequence[Sequence[float]]
    chosen: Sequence[Sequence[int]]


def _held(placed: Placed, coverage: float, opinion: Opinion) -> Held:
    return Held(placed, coverage, opinion.classes, opinion.marks)
