"""Flags and the likely fault of one answer, from its scores and the thresholds in force (docs/flags.md).

The scorer is stateless: a flag is `score < threshold - 0.001`, so that noise in the last digits cannot flip it (field
case 34). Hysteresis belongs to rolling alert states only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

MARGIN = 0.001


class Flag(StrEnum):
    """Which score crossed its threshold, or what else was seen. A closed list: a new flag is a change of contract."""

    FAITHFULNESS_LOW = "faithfulness_low"
    FAITHFUL_PROBABILITY_LOW = "faithful_probability_low"
    EXPECTED_FAITHFULNESS_LOW = "expected_faithfulness_low"
    ANSWER_RELEVANCE_LOW = "answer_relevance_low"
    CONTEXT_PRECISION_LOW = "context_precision_low"
    CONTEXT_RECALL_LOW = "context_recall_low"
    CONTEXT_RELEVANCE_LOW = "context_relevance_low"
    TOPIC_SIMILARITY_LOW = "topic_similarity_low"
    QUESTION_CONTEXT_SIMILARITY_LOW = "question_context_similarity_low"
    QUESTION_ANSWER_SIMILARITY_LOW = "question_answer_similarity_low"
    CONTEXT_CONFLICT = "context_conflict"
    """One passage supports a statement of the answer and another contradicts it."""
    SUSPECTED_INJECTION = "suspected_injection"
    """A text of the event seems to talk to the judge."""


class Fault(StrEnum):
    """Which part of the QA system is the likely cause; `unknown` where the scores that would tell are missing."""

    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    PROMPT = "prompt"
    DOCUMENTS = "documents"
    UNKNOWN = "unknown"


_FLAG_OF = {flag.value.removesuffix("_low"): flag for flag in Flag if flag.value.endswith("_low")}
FLAGGED_METRICS = tuple(_FLAG_OF)
"""The metrics that a threshold flags."""


def flags_of(
    values: Mapping[str, float], thresholds: Mapping[str, float], seen: Collection[Flag] = ()
) -> tuple[Flag, ...]:
    """The flags of one answer, in the order of the closed list. A metric without value or threshold raises none.

    `seen`: the flags that rest on no threshold, as they were seen.

    >>> flags_of({"faithfulness": 0.5}, {"faithfulness": 0.75})
    (<Flag.FAITHFULNESS_LOW: 'faithfulness_low'>,)
    >>> flags_of({"faithfulness": 0.7495}, {"faithfulness": 0.75})
    ()
    """
    low = {
        flag
        for metric, flag in _FLAG_OF.items()
        if metric in values and metric in thresholds and values[metric] < thresholds[metric] - MARGIN
    }
    return tuple(flag for flag in Flag if flag in low or flag in seen)


def fault_of(values: Mapping[str, float], thresholds: Mapping[str, float], flags: tuple[Flag, ...]) -> Fault:
    """The likely fault of a flagged answer; the first row that fits.

    | passages contradict each other | passages suffice | answer is faithful | answer fits the question | fault |
    |---|---|---|---|---|
    | yes | any | any | any | documents |
    | no | no | any | any | retrieval |
    | no | yes | no | any | generation |
    | no | yes | yes | no | prompt |
    | anything else, or an input is missing | | | | unknown |

    Whether passages suffice is told by context recall where there is one; else they do where neither context relevance
    nor the similarity of question and context is low. An answer is faithful where none of faithfulness, its expectation
    and the probability that it is faithful is low. Whether the answer fits the question is told by answer relevance,
    else by the similarity of question and answer. Passages that suffice among many that do not help are a fault of
    retrieval where nothing worse is found.
    """
    if not flags:
        return Fault.UNKNOWN
    if Flag.CONTEXT_CONFLICT in flags:
        return Fault.DOCUMENTS

    def holds(*metrics: str) -> bool | None:
        """False where one of these is flagged, None where none of them has a value and a threshold."""
        known = [_FLAG_OF[m] not in flags for m in metrics if m in values and m in thresholds]
        return all(known) if known else None

    recalled = holds("context_recall")
    fitting = holds("context_relevance", "question_context_similarity")
    suffice = fitting if recalled is None else recalled
    if suffice is False:
        return Fault.RETRIEVAL
    if suffice is None:
        return Fault.UNKNOWN
    faithful = holds("faithfulness", "faithful_probability", "expected_faithfulness")
    if faithful is False:
        return Fault.GENERATION
    relevance = holds("answer_relevance")
    if faithful and (holds("question_answer_similarity") if relevance is None else relevance) is False:
        return Fault.PROMPT
    return Fault.RETRIEVAL if fitting is False else Fault.UNKNOWN
