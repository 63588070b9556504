"""Flags that rest on no threshold, and the table of likely faults."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from metrics.flags import Fault, Flag, fault_of, flags_of

THRESHOLDS = {
    "faithfulness": 0.75,
    "answer_relevance": 0.7,
    "context_recall": 0.6,
    "context_relevance": 0.3,
    "question_context_similarity": 0.8,
    "question_answer_similarity": 0.8,
}


def fault(values: Mapping[str, float], seen: tuple[Flag, ...] = ()) -> Fault:
    flags = flags_of(values, THRESHOLDS, seen)
    return fault_of(values, THRESHOLDS, flags)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"faithfulness": 0.2, "context_recall": 0.9}, Fault.GENERATION),
        ({"faithfulness": 0.2, "context_recall": 0.9, "context_relevance": 0.1}, Fault.GENERATION),
        ({"faithfulness": 1.0, "context_relevance": 0.9, "answer_relevance": 0.1}, Fault.PROMPT),
        ({"faithfulness": 1.0, "context_recall": 0.9, "question_answer_similarity": 0.1}, Fault.PROMPT),
        ({"faithfulness": 1.0, "context_recall": 0.1}, Fault.RETRIEVAL),
        ({"faithfulness": 0.1, "context_recall": 0.1, "context_relevance": 0.9}, Fault.RETRIEVAL),
        ({"faithfulness": 0.1, "context_relevance": 0.1}, Fault.RETRIEVAL),
        ({"faithfulness": 0.1, "question_context_similarity": 0.1}, Fault.RETRIEVAL),
        ({"faithfulness": 1.0, "context_recall": 1.0, "context_relevance": 0.1}, Fault.RETRIEVAL),
        ({"faithfulness": 0.1, "question_context_similarity": 0.9}, Fault.GENERATION),
        ({"faithfulness": 0.1}, Fault.UNKNOWN),
        ({"context_recall": 0.9, "answer_relevance": 0.1}, Fault.UNKNOWN),
        ({"faithfulness": 1.0, "context_recall": 0.9}, Fault.UNKNOWN),
        # Answer relevance is asked first: what it says is not overruled by a cosine of two texts.
        (
            {"faithfulness": 1.0, "context_recall": 1.0, "answer_relevance": 0.9, "question_answer_similarity": 0.1},
            Fault.UNKNOWN,
        ),
    ],
)  # fmt: skip
def test_the_likely_fault(values: dict[str, float], expected: Fault) -> None:
    assert fault(values) is expected


def test_passages_that_contradict_each_other_are_a_fault_of_the_documents() -> None:
    assert fault({"faithfulness": 1.0}, (Flag.CONTEXT_CONFLICT,)) is Fault.DOCUMENTS
    assert fault({"faithfulness": 0.1, "context_recall": 1.0}, (Flag.CONTEXT_CONFLICT,)) is Fault.DOCUMENTS


def test_what_was_seen_is_a_flag_without_a_threshold() -> None:
    seen = (Flag.SUSPECTED_INJECTION, Flag.CONTEXT_CONFLICT)
    assert flags_of({"faithfulness": 0.1}, {"faithfulness": 0.75}, seen) == (
        Flag.FAITHFULNESS_LOW,
        Flag.CONTEXT_CONFLICT,
        Flag.SUSPECTED_INJECTION,
    )
    assert flags_of({"faithfulness": 1.0}, {"faithfulness": 0.75}) == ()
