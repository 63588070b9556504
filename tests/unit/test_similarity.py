"""Similarity metrics on hand-made vectors: aggregation, values per chunk, reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluation import Evaluator
from metrics.event import Chunk, Event
from metrics.metric import Metric, Text, Vector, Vectors
from metrics.outcome import Outcome, Reason, Scored, Unscored
from metrics.similarity import QuestionAnswerSimilarity, QuestionContextSimilarity, TopicSimilarity, build_metrics


def event(question: str | None, chunks: Sequence[str], answer: str | None) -> Event:
    return Event("e", 0.0, question, tuple(Chunk(text) for text in chunks), answer)


def at(degrees: float) -> Vector:
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], np.float32)


def scored(metric: Metric, of: Event, angles: dict[str, float]) -> Outcome:
    vectors: Vectors = {text: at(angles[text.content]) for text in metric.texts(of)}
    return metric.score(of, vectors)


def test_best_is_the_most_similar_chunk_and_keeps_every_value() -> None:
    outcome = scored(TopicSimilarity("best"), event("q", ["far", "near", " "], "a"), {"a": 0, "far": 90, "near": 60})
    assert isinstance(outcome, Scored)
    assert outcome.value == pytest.approx(0.5, abs=1e-6)
    assert outcome.per_chunk == (pytest.approx(0.0, abs=1e-6), pytest.approx(0.5, abs=1e-6), None)


def test_mean_is_the_cosine_with_the_mean_of_the_chunk_vectors() -> None:
    outcome = scored(TopicSimilarity("mean"), event(None, ["left", "right"], "a"), {"a": 0, "left": 60, "right": 0})
    assert isinstance(outcome, Scored)
    assert outcome.value == pytest.approx(math.cos(math.radians(30)), abs=1e-6)
    assert len(outcome.per_chunk) == 2


def test_mean_of_opposite_chunks_has_no_direction() -> None:
    outcome = scored(TopicSimilarity("mean"), event(None, ["left", "right"], "a"), {"a": 0, "left": 0, "right": 180})
    assert outcome == Unscored(Reason.NON_FINITE)


def test_all_embeds_the_chunks_as_one_text() -> None:
    metric = TopicSimilarity("all")
    of = event(None, ["one", "\u200b", "two"], "a")
    assert [text.content for text in metric.texts(of)] == ["a", "one\n\ntwo"]
    outcome = scored(metric, of, {"a": 0, "one\n\ntwo": 60})
    assert isinstance(outcome, Scored)
    assert outcome.value == pytest.approx(0.5, abs=1e-6)


def test_roles_question_is_a_query_answer_and_chunks_are_passages() -> None:
    of = event("ask", ["chunk"], "answer")
    texts = {text for metric in build_metrics(NAMES, "best") for text in metric.texts(of)}
    assert texts == {Text("query", "ask"), Text("passage", "chunk"), Text("passage", "answer")}


NAMES = ("topic_similarity", "question_context_similarity", "question_answer_similarity")
BLANKS = (None, "", "   ", "\u200b", "\u0000")


# Field case 39: blank parts have a reason; 0.0 is a real score here and never stands for one.
@pytest.mark.parametrize("blank", BLANKS)
def test_reasons_of_blank_parts(blank: str | None) -> None:
    topic, retrieval, reply = TopicSimilarity("best"), QuestionContextSimilarity(), QuestionAnswerSimilarity()
    angles = {"q": 0.0, "c": 10.0, "a": 20.0}
    assert scored(topic, event("q", ["c"], blank), angles) == Unscored(Reason.EMPTY_ANSWER)
    assert scored(reply, event("q", ["c"], blank), angles) == Unscored(Reason.EMPTY_ANSWER)
    assert scored(reply, event(blank, ["c"], "a"), angles) == Unscored(Reason.NO_QUESTION)
    assert scored(retrieval, event(blank, ["c"], "a"), angles) == Unscored(Reason.NO_QUESTION)
    assert isinstance(scored(topic, event(blank, ["c"], "a"), angles), Scored)
    if blank is not None:
        assert scored(topic, event("q", [blank], "a"), angles) == Unscored(Reason.EMPTY_TEXT)


def test_no_context_comes_first() -> None:
    assert scored(TopicSimilarity("best"), event("q", [], ""), {}) == Unscored(Reason.NO_CONTEXT)
    assert scored(QuestionContextSimilarity(), event("q", [], "a"), {}) == Unscored(Reason.NO_CONTEXT)
    assert isinstance(scored(QuestionAnswerSimilarity(), event("q", [], "a"), {"q": 0, "a": 5}), Scored)


def test_reason_of_a_text_that_was_not_embedded_is_passed_on() -> None:
    failed = Unscored(Reason.EMBEDDER_ERROR)
    of = event("q", ["c", "d"], "a")
    vectors: dict[Text, Vector | Unscored] = {t: at(0) for t in TopicSimilarity("best").texts(of)}
    vectors[Text("passage", "d")] = failed
    assert TopicSimilarity("best").score(of, vectors) == failed


@given(st.lists(st.floats(-180, 180), min_size=1, max_size=6), st.floats(-180, 180))
def test_values_lie_in_their_range_and_best_is_the_largest(chunks: list[float], answer: float) -> None:
    names = [f"c{i}" for i in range(len(chunks))]
    angles = dict(zip(names, chunks, strict=True)) | {"a": answer}
    outcome = scored(TopicSimilarity("best"), event(None, names, "a"), angles)
    assert isinstance(outcome, Scored)
    assert -1.0 <= outcome.value <= 1.0
    assert outcome.value == max(value for value in outcome.per_chunk if value is not None)


def test_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'topic'; known: topic_similarity, question_context_similarity"):
        build_metrics(["topic"], "best")
    with pytest.raises(ValueError, match="twice"):
        build_metrics(["topic_similarity", "topic_similarity"], "best")


class Failing:
    identity, dimension = "failing", 2

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        raise OSError("no such endpoint")


# Field case 40, first half: another model or aggregation is another definition, so no threshold carries over.
def test_definition_follows_model_and_aggregation() -> None:
    class Other(Failing):
        identity = "another"

    seen = {
        Evaluator(build_metrics(NAMES, aggregation), model, sketches=False).definitions["topic_similarity"]
        for aggregation in ("best", "mean", "all")
        for model in (Failing(), Other())
    }
    assert len(seen) == 6


def test_text_that_breaks_the_embedder_costs_only_its_own_event() -> None:
    class Fragile(Failing):
        def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
            if any("poison" in text.content for text in texts):
                raise ValueError("poison")
            return [at(len(text.content)) for text in texts]

    events = [event("q", [f"chunk {i}"], f"answer {i}" if i != 3 else "poison") for i in range(8)]
    found = Evaluator(build_metrics(NAMES[:1], "best"), Fragile(), sketches=False).evaluate(events)
    outcomes = [one.outcomes["topic_similarity"] for one in found]
    assert outcomes[3] == Unscored(Reason.EMBEDDER_ERROR)
    assert all(isinstance(outcome, Scored) for i, outcome in enumerate(outcomes) if i != 3)


def test_failing_embedder_leaves_reasons_not_numbers() -> None:
    evaluator = Evaluator(build_metrics(NAMES, "best"), Failing(), sketches=True)
    (found,) = evaluator.evaluate([event("q", ["c"], "a")])
    assert set(found.outcomes.values()) == {Unscored(Reason.EMBEDDER_ERROR)}
    assert found.sketch == {}
