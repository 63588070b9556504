"""Cosine similarity metrics: topic drift of one answer, and cheap signs of a retrieval failure.

A cosine is not a share of what is right: unrelated texts reach 0.7 and more in some models (E5 among them), and a
negated sentence stays near 1. It is watched as a distribution against a baseline of the same definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from metrics.blank import is_blank
from metrics.event import Event
from metrics.metric import Metric, Text, Vector, Vectors
from metrics.outcome import Outcome, Reason, Unscored, bounded

Aggregation = Literal["best", "mean", "all"]
VERSION = 1
BOUNDS = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class TopicSimilarity:
    """Cosine of the answer and the context, in [-1, 1]; low = the answer is about something else.

    `best`: the most similar chunk. `mean`: the unit mean of the chunk vectors. `all`: the chunks as one text.
    Chunks without text take no part.
    """

    aggregation: Aggregation

    @property
    def name(self) -> str:
        return "topic_similarity"

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS

    @property
    def formula(self) -> str:
        return f"{self.name}/{self.aggregation}/{VERSION}"

    def texts(self, event: Event) -> tuple[Text, ...]:
        if _missing(event, question=False, contexts=True, answer=True):
            return ()
        return (_answer(event), *_context(event, self.aggregation))

    def score(self, event: Event, vectors: Vectors) -> Outcome:
        missing = _missing(event, question=False, contexts=True, answer=True)
        return missing or _against_context(vectors[_answer(event)], event, vectors, self.aggregation)


@dataclass(frozen=True, slots=True)
class QuestionContextSimilarity:
    """Cosine of the question and its most similar chunk, in [-1, 1]; low = retrieval found nothing fitting."""

    @property
    def name(self) -> str:
        return "question_context_similarity"

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS

    @property
    def formula(self) -> str:
        return f"{self.name}/best/{VERSION}"

    def texts(self, event: Event) -> tuple[Text, ...]:
        if _missing(event, question=True, contexts=True, answer=False):
            return ()
        return (_question(event), *_context(event, "best"))

    def score(self, event: Event, vectors: Vectors) -> Outcome:
        missing = _missing(event, question=True, contexts=True, answer=False)
        return missing or _against_context(vectors[_question(event)], event, vectors, "best")


@dataclass(frozen=True, slots=True)
class QuestionAnswerSimilarity:
    """Cosine of the question and the answer, in [-1, 1]; low = the answer is about something else than was asked."""

    @property
    def name(self) -> str:
        return "question_answer_similarity"

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS

    @property
    def formula(self) -> str:
        return f"{self.name}/{VERSION}"

    def texts(self, event: Event) -> tuple[Text, ...]:
        if _missing(event, question=True, contexts=False, answer=True):
            return ()
        return (_question(event), _answer(event))

    def score(self, event: Event, vectors: Vectors) -> Outcome:
        missing = _missing(event, question=True, contexts=False, answer=True)
        if missing:
            return missing
        question, answer = vectors[_question(event)], vectors[_answer(event)]
        if isinstance(question, Unscored):
            return question
        if isinstance(answer, Unscored):
            return answer
        return bounded(cosine(question, answer), *BOUNDS)


def build_metrics(names: Sequence[str], aggregation: Aggregation) -> tuple[Metric, ...]:
    """The metrics of these names, in this order.

    Raises:
        ValueError: an unknown or repeated name.
    """
    known: dict[str, Metric] = {
        metric.name: metric
        for metric in (TopicSimilarity(aggregation), QuestionContextSimilarity(), QuestionAnswerSimilarity())
    }
    for name in names:
        if name not in known:
            raise ValueError(f"no metric is called {name!r}; known: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise ValueError(f"a metric is named twice: {', '.join(names)}")
    return tuple(known[name] for name in names)


def cosine(a: Vector, b: Vector) -> float:
    """Of two unit vectors; summed in float64, so that it does not depend on how many are computed at once."""
    return float(np.dot(a.astype(np.float64), b.astype(np.float64)))


def _against_context(one: Vector | Unscored, event: Event, vectors: Vectors, aggregation: Aggregation) -> Outcome:
    if isinstance(one, Unscored):
        return one
    chunks: list[Vector] = []
    for text in _context(event, aggregation):
        vector = vectors[text]
        if isinstance(vector, Unscored):
            return vector
        chunks.append(vector)
    each = [cosine(one, chunk) for chunk in chunks]
    if aggregation == "all":
        return bounded(each[0], *BOUNDS)
    found = iter(each)
    per_chunk = tuple(None if is_blank(c.text) else min(max(next(found), -1.0), 1.0) for c in event.contexts)
    if aggregation == "best":
        return bounded(max(each), *BOUNDS, per_chunk)
    mean = np.mean(np.asarray(chunks, np.float64), axis=0)
    norm = float(np.linalg.norm(mean))
    if norm < 1e-6:
        return Unscored(Reason.NON_FINITE)
    return bounded(float(np.dot(mean / norm, one.astype(np.float64))), *BOUNDS, per_chunk)


def _missing(event: Event, *, question: bool, contexts: bool, answer: bool) -> Unscored | None:
    if contexts and not event.contexts:
        return Unscored(Reason.NO_CONTEXT)
    if question and is_blank(event.question):
        return Unscored(Reason.NO_QUESTION)
    if answer and is_blank(event.answer):
        return Unscored(Reason.EMPTY_ANSWER)
    if contexts and all(is_blank(chunk.text) for chunk in event.contexts):
        return Unscored(Reason.EMPTY_TEXT)
    return None


def _question(event: Event) -> Text:
    return Text("query", event.question or "")


def _answer(event: Event) -> Text:
    return Text("passage", event.answer or "")


def _context(event: Event, aggregation: Aggregation) -> tuple[Text, ...]:
    texts = [chunk.text for chunk in event.contexts if not is_blank(chunk.text)]
    if aggregation == "all":
        return (Text("passage", "\n\n".join(texts)),)
    return tuple(Text("passage", text) for text in texts)
