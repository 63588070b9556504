"""Flags and the likely fault of one answer, from its scores and the thresholds in force (docs/flags.md).

The scorer is stateless: a flag is `score < threshold - 0.001`, so that noise in the last digits cannot flip it (field
case 34). Hysteresis belongs to rolling alert states only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

MARGIN = 0.001


class Flag(StrEnum):
    """Which score crossed its threshold. A closed list: a new flag is a change of contract."""

    FAITHFULNESS_LOW = "faithfulness_low"
    TOPIC_SIMILARITY_LOW = "topic_similarity_low"
    QUESTION_CONTEXT_SIMILARITY_LOW = "question_context_similarity_low"
    QUESTION_ANSWER_SIMILARITY_LOW = "question_answer_similarity_low"


class Fault(StrEnum):
    """Which part of the QA system is the likely cause; `unknown` where the scores that would tell are missing."""

    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    PROMPT = "prompt"
    DOCUMENTS = "documents"
    UNKNOWN = "unknown"


_FLAG_OF = {flag.value.removesuffix("_low"): flag for flag in Flag}


def flags_of(values: Mapping[str, float], thresholds: Mapping[str, float]) -> tuple[Flag, ...]:
    """The flags of one answer, in the order of the closed list. A metric without value or threshold raises none.

    >>> flags_of({"faithfulness": 0.5}, {"faithfulness": 0.75})
    (<Flag.FAITHFULNESS_LOW: 'faithfulness_low'>,)
    >>> flags_of({"faithfulness": 0.7495}, {"faithfulness": 0.75})
    ()
    """
    return tuple(
        flag
        for metric, flag in _FLAG_OF.items()
        if metric in values and metric in thresholds and values[metric] < thresholds[metric] - MARGIN
    )


def fault_of(values: Mapping[str, float], thresholds: Mapping[str, float], flags: tuple[Flag, ...]) -> Fault:
    """The likely fault of a flagged answer.

    | context fits the question | answer is faithful | answer fits the question | fault |
    |---|---|---|---|
    | no | any | any | retrieval |
    | yes | no | any | generation |
    | yes | yes | no | prompt |
    | anything else, or an input is missing | | | unknown |

    `documents` (the context contradicts itself) needs a judge that compares passages; no score here tells it yet.
    """
    if not flags:
        return Fault.UNKNOWN

    def holds(metric: str) -> bool | None:
        if metric not in values or metric not in thresholds:
            return None
        return _FLAG_OF[metric] not in flags

    retrieved = holds("question_context_similarity")
    if retrieved is False:
        return Fault.RETRIEVAL
    if retrieved is None:
        return Fault.UNKNOWN
    faithful = holds("faithfulness")
    if faithful is False:
        return Fault.GENERATION
    if faithful and holds("question_answer_similarity") is False:
        return Fault.PROMPT
    return Fault.UNKNOWN
