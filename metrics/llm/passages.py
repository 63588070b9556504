"""The passages that matter to a statement: contexts cut at sentences, ranked by words and meaning, packed into calls.

Nothing is cut off in silence: what is chosen and does not fit one call goes into another, and what is not chosen was
ranked below what was, by both measures, by more than a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.blank import is_blank
from metrics.event import Chunk
from metrics.lexical.evidence import NUMBER_WEIGHT, Index
from metrics.lexical.quantities import agrees
from metrics.lexical.reading import Passage, Sentence, read, read_sentence
from metrics.lexical.words import fold
from metrics.llm.injection import blanked, without_suspicious
from metrics.metric import Text, Vector
from metrics.outcome import Unscored
from metrics.sentences import sentence_spans

Embed = Callable[[Sequence[Text]], Sequence[Vector | Unscored]]
"""Texts to unit vectors, in order; safe to call from another thread than the scorer's inference thread."""

PIECE_TOKENS = 120
"""Aim for one piece of a context that is chosen from; a sentence is never cut."""
WHOLE_TOKENS = 500
"""Contexts up to this size are shown whole: choosing saves nothing there."""
AIM_TOKENS = 400
"""Passages for one statement, by rank, where contexts are larger; the margin comes on top."""
WORDS_MARGIN = 0.85
"""A piece that holds at least this share of what the best one holds of the statement matters too."""
MEANING_MARGIN = 0.2
"""So does one whose cosine with the statement is nearer to the best than this share of the range of cosines: models
differ in how far apart they put texts."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that may support a statement: a chunk, or what the user said earlier (`chunk` None, `name` set)."""

    text: str
    safe: str
    """The text with blanks where something seems to talk to the judge; of the same length."""
    chunk: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Piece:
    """`source.text[start:end]`; `shown` is what the judge sees of it."""

    source: int
    start: int
    end: int
    shown: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pieces of all sources in order, as read, with their unit vectors; `vectors` None where no choice is needed."""

    pieces: tuple[Piece, ...]
    index: Index
    read: tuple[Passage, ...]
    vectors: tuple[Vector | None, ...] | None


def sources_of(contexts: Sequence[Chunk], user_turns: Sequence[str]) -> tuple[Source, ...]:
    """Chunks, then the user's earlier turns. What an assistant said earlier is no evidence."""
    chunks = [Source(chunk.text, blanked(chunk.text), i, chunk.id) for i, chunk in enumerate(contexts)]
    turns = [Source(turn, blanked(turn), None, f"conversation[{i}]") for i, turn in enumerate(user_turns)]
    return (*chunks, *turns)


def tokens_of(text: str) -> int:
    """Tokens of a text, by estimate and rather too many: 3.5 characters of ASCII each, one of anything else.

    >>> tokens_of("退款需要7天")
    6
    """
    plain = sum(1 for c in text if c < "\x80")
    return -(-2 * plain // 7) + len(text) - plain


def pieces_of(sources: Sequence[Source], most_tokens: int) -> list[Piece]:
    """Every source with text, cut at sentence ends into pieces of about `most_tokens`; all of its text is in one."""
    pieces = []
    for at, source in enumerate(sources):
        if not is_blank(source.text):
            for start, end in _cuts(source.text, most_tokens):
                shown = without_suspicious(source.text[start:end]).strip()
                pieces.append(Piece(at, start, end, shown, tokens_of(shown)))
    return pieces


def _cuts(text: str, most_tokens: int) -> list[tuple[int, int]]:
    if tokens_of(text) <= most_tokens:
        return [(0, len(text))]
    ends = [end for _, end in sentence_spans(text, 0, len(text))]
    cuts: list[tuple[int, int]] = []
    start = last = 0
    for end in [*ends, len(text)]:
        if last > start and tokens_of(text[start:end]) > most_tokens:
            cuts.append((start, last))
            start = last
        last = end
    return [*cuts, (start, len(text))] if text[start:].strip() else cuts


def rank(sources: Sequence[Source], embed: Embed, prior: dict[str, float] | None = None) -> Ranked:
    """Cut and read the sources; they are embedded only where they are larger than what is shown whole."""
    pieces = pieces_of(sources, PIECE_TOKENS)
    passages = tuple(read(sources[p.source].safe[p.start : p.end]) for p in pieces)
    small = sum(p.tokens for p in pieces) <= WHOLE_TOKENS
    vectors = None
    if not small:
        found = embed([Text("passage", p.shown) for p in pieces])
        vectors = tuple(None if isinstance(v, Unscored) else v for v in found)
    return Ranked(tuple(pieces), Index(passages, prior or {}), passages, vectors)


def chosen(ranked: Ranked, statement: str, question: str, embed: Embed) -> tuple[Piece, ...]:
    """The pieces that matter to a statement, in the order of the contexts.

    All of small contexts; else the best by words and the best by meaning in turn, up to `AIM_TOKENS`, and all within
    the margin of the best by either.
    """
    if ranked.vectors is None:
        return ranked.pieces
    words = _by_words(ranked, statement)
    meaning = _by_meaning(ranked.vectors, embed, f"{question} {statement}".strip())
    orders = [_order(words), _order(meaning)]
    kept: set[int] = set()
    used = 0
    for pair in zip(*orders, strict=True):
        for at in pair:
            if at not in kept and used + ranked.pieces[at].tokens <= AIM_TOKENS:
                kept.add(at)
                used += ranked.pieces[at].tokens
    least_meaning = max(meaning) - MEANING_MARGIN * (max(meaning) - min(meaning))
    kept |= {at for at, w in enumerate(words) if w > 0 and w >= max(words) * WORDS_MARGIN}
    kept |= {at for at, m in enumerate(meaning) if m >= least_meaning}
    return tuple(ranked.pieces[at] for at in sorted(kept))


def packed(pieces: Sequence[Piece], most_tokens: int) -> list[tuple[Piece, ...]]:
    """Pieces in order, in as few calls as hold at most `most_tokens` each (a larger piece goes alone)."""
    calls: list[list[Piece]] = []
    used = most_tokens + 1
    for piece in pieces:
        if used + piece.tokens > most_tokens:
            calls.append([])
            used = 0
        calls[-1].append(piece)
        used += piece.tokens
    return [tuple(call) for call in calls]


def shown(pieces: Sequence[Piece]) -> str:
    """Pieces as a prompt shows them: numbered by source, neighbours joined, `[…]` where something lies between."""
    lines: list[str] = []
    before: Piece | None = None
    number = 0
    for piece in pieces:
        if before is not None and before.source == piece.source:
            lines[-1] += (" " if before.end == piece.start else " […] ") + piece.shown
        else:
            number += 1
            lines.append(f"[{number}] {piece.shown}")
        before = piece
    return "\n".join(lines)


def _by_words(ranked: Ranked, statement: str) -> list[float]:
    """Weight of what each piece holds of the statement."""
    said = read_sentence(statement, fold(statement), 0, len(statement))
    weights = {term: ranked.index.weight(term) for term in said.vocabulary}
    return [_held(said, weights, passage) for passage in ranked.read]


def _held(said: Sentence, weights: dict[str, float], passage: Passage) -> float:
    vocabulary = frozenset().union(*(s.vocabulary for s in passage.sentences))
    numbers = [q for s in passage.sentences for q in s.numbers]
    words = sum(weight for term, weight in weights.items() if term in vocabulary)
    return words + NUMBER_WEIGHT * sum(any(agrees(one, q) for q in numbers) for one in said.numbers)


def _by_meaning(vectors: Sequence[Vector | None], embed: Embed, text: str) -> list[float]:
    (query,) = embed([Text("query", text)])
    if isinstance(query, Unscored):
        return [0.0] * len(vectors)
    return [0.0 if v is None else float(np.dot(query.astype(np.float64), v.astype(np.float64))) for v in vectors]


def _order(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda at: (-values[at], at))
