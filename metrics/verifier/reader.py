"""Statements held against windows of their contexts: tokenise, narrow, pack, run, and give every reading back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from metrics.embedding import batches
from metrics.language import UNSPACED
from metrics.lexical.evidence import Index
from metrics.lexical.reading import Passage, Sentence
from metrics.metric import Text, Vector
from metrics.outcome import Unscored
from metrics.tokens import Tokens
from metrics.verifier.network import Verifier, read
from metrics.verifier.packing import PREMISE_TOKENS, STATEMENT_TOKENS, Row, pack
from metrics.verifier.windows import FEW, Placed, Window, chosen, coverages, windows_of

BUDGET = 4096
"""Tokens of one pass."""
STATEMENTS = 12
"""Statements of one row: more only make its attention larger."""
CHUNKS_KEPT = 1024
SHORT, SHORT_WIDE = 5, 10
"""Words (characters in scripts without spaces) up to which a statement means little without its question."""

Embed = Callable[[Sequence[Text]], Sequence[Vector | Unscored]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A context as windows, each with its token ids."""

    windows: tuple[Window, ...]
    ids: tuple[tuple[int, ...], ...]


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
    """One verifier over one tokeniser. Not safe for several threads at once."""

    def __init__(self, verifier: Verifier, tokens: Tokens, embed: Embed | None = None) -> None:
        """`embed` finds similar windows where there are many; without it, words alone choose."""
        self.verifier, self.tokens = verifier, tokens
        self._embed = embed
        self._kept: Callable[[str, tuple[tuple[int, int], ...]], Cut] = lru_cache(maxsize=CHUNKS_KEPT)(self._cut)

    def read(self, questions: Sequence[Question]) -> list[list[list[Held]]]:
        """For every question, for every statement: its readings, best covered window first."""
        rows: list[Row] = []
        places: list[list[tuple[int, int, int]]] = []
        found: list[list[list[Held | None]]] = []
        placed_of: list[list[Placed]] = []
        chosen_of: list[list[list[int]]] = []
        covered_of: list[list[list[float]]] = []
        for q, question in enumerate(questions):
            cuts = [
                self._kept(text, tuple((s.start, s.end) for s in passage.sentences))
                for text, passage in zip(question.sources, question.passages, strict=True)
            ]
            placed = [
                Placed(k, window, question.passages[k].sentences[window.first : window.last])
                for k, cut in enumerate(cuts)
                for window in cut.windows
            ]
            premises = [ids for cut in cuts for ids in cut.ids]
            covered = [coverages(s, question.index, placed) for s in question.statements]
            similar = self._similar(question, placed)
            wanted = [chosen(c, similar[k] if similar is not None else None) for k, c in enumerate(covered)]
            statements = [ids[:STATEMENT_TOKENS] for ids in self.tokens.cut(question.texts)] if question.texts else []
            found.append([[None] * len(w) for w in wanted])
            placed_of.append(placed)
            chosen_of.append(wanted)
            covered_of.append(covered)
            for w in range(len(placed)):
                own = [k for k, choice in enumerate(wanted) if w in choice]
                for at in range(0, len(own), STATEMENTS):
                    part = own[at : at + STATEMENTS]
                    rows.append(Row(premises[w], [statements[k] for k in part]))
                    places.append([(q, k, wanted[k].index(w)) for k in part])
        for batch in batches([row.length for row in rows], BUDGET):
            for r, (classes, marks) in zip(batch, self._run([rows[i] for i in batch]), strict=True):
                for (q, k, n), probabilities, mark in zip(places[r], classes, marks, strict=True):
                    w = chosen_of[q][k][n]
                    found[q][k][n] = Held(placed_of[q][w], covered_of[q][k][w], probabilities, mark)
        return [[[h for h in statement if h is not None] for statement in question] for question in found]

    def _run(self, rows: Sequence[Row]) -> list[tuple[list[tuple[float, float, float]], list[npt.NDArray[np.float32]]]]:
        """For each row: class probabilities and token marks of its statements."""
        batch = pack(rows, self.tokens.before[0], self.tokens.after[-1])
        with torch.inference_mode():
            reading = read(self.verifier, batch)
            classes = torch.softmax(reading.classes.float(), 1).tolist()
            marks = torch.sigmoid(reading.tokens.float()).numpy()
        found = []
        number = at = 0
        for row in rows:
            own: list[tuple[float, float, float]] = []
            of_row: list[npt.NDArray[np.float32]] = []
            for statement in row.statements:
                length = min(len(statement), STATEMENT_TOKENS) + 2
                supported, not_found, contradicted = classes[number]
                own.append((supported, not_found, contradicted))
                of_row.append(marks[at + 1 : at + length - 1])
                number, at = number + 1, at + length
            found.append((own, of_row))
        return found

    def _cut(self, text: str, spans: tuple[tuple[int, int], ...]) -> Cut:
        windows = windows_of(text, spans, lambda texts: [len(ids) for ids in self.tokens.cut(texts)] if texts else [])
        ids = self.tokens.cut([" ".join(text[w.start : w.end].split()) for w in windows]) if windows else []
        return Cut(tuple(windows), tuple(tuple(i[:PREMISE_TOKENS]) for i in ids))

    def _similar(self, question: Question, placed: Sequence[Placed]) -> npt.NDArray[np.float64] | None:
        """Cosines (statements, windows); None where nothing is to be chosen or a vector is missing."""
        if self._embed is None or len(placed) <= FEW or not question.texts:
            return None
        texts = [Text("passage", question.sources[p.source][p.window.start : p.window.end]) for p in placed]
        vectors = self._embed([*(Text("query", t) for t in question.texts), *texts])
        arrays = [np.asarray(v, np.float64) for v in vectors if not isinstance(v, Unscored)]
        if len(arrays) < len(vectors):
            return None
        matrix = np.stack(arrays)
        count = len(question.texts)
        return np.asarray(matrix[:count] @ matrix[count:].T)
