"""A score is a value or `unscored(reason)`; there is no third thing (design: invariant 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a missing score counts: coverage = scored / (scored + failed)."""

    NOT_APPLICABLE = "not_applicable"
    THINNED = "thinned"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a metric has no value. A closed list: a new reason is a change of contract."""

    NO_REFERENCE = "no_reference"
    NO_CLAIMS = "no_claims"
    NO_CONTEXT = "no_context"
    NO_QUESTION = "no_question"
    NO_PROSE = "no_prose"
    EMPTY_ANSWER = "empty_answer"
    EVASIVE = "evasive"
    GENERIC_QUESTIONS = "generic_questions"
    NOT_CONFIGURED = "not_configured"
    BUDGET = "budget"
    SHED = "shed"
    JUDGE_TIMEOUT = "judge_timeout"
    JUDGE_PARSE = "judge_parse"
    JUDGE_INCOMPLETE = "judge_incomplete"
    JUDGE_BUSY = "judge_busy"
    JUDGE_ERROR = "judge_error"
    EMBEDDER_ERROR = "embedder_error"
    EMPTY_TEXT = "empty_text"
    NON_FINITE = "non_finite"
    INTERNAL_ERROR = "internal_error"

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self, Kind.FAILED)


_KINDS = {
    Reason.NO_REFERENCE: Kind.NOT_APPLICABLE,
    Reason.NO_CLAIMS: Kind.NOT_APPLICABLE,
    Reason.NO_CONTEXT: Kind.NOT_APPLICABLE,
    Reason.NO_QUESTION: Kind.NOT_APPLICABLE,
    Reason.NO_PROSE: Kind.NOT_APPLICABLE,
    Reason.EMPTY_ANSWER: Kind.NOT_APPLICABLE,
    Reason.EVASIVE: Kind.NOT_APPLICABLE,
    Reason.GENERIC_QUESTIONS: Kind.NOT_APPLICABLE,
    Reason.NOT_CONFIGURED: Kind.NOT_APPLICABLE,
    Reason.BUDGET: Kind.THINNED,
    Reason.SHED: Kind.THINNED,
}


@dataclass(frozen=True, slots=True)
class Scored:
    """A value inside its metric's own range. `per_chunk`: one value a context chunk, None for one without text; empty
    where the metric has none."""

    value: float
    per_chunk: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Unscored:
    """A metric without a value, and why."""

    reason: Reason


Outcome = Scored | Unscored


def bounded(value: float, low: float, high: float, per_chunk: tuple[float | None, ...] = ()) -> Outcome:
    """`Scored`, with rounding noise of at most 1e-6 outside [low, high] taken off; anything else is `non_finite`.

    >>> bounded(1.0000001, -1.0, 1.0)
    Scored(value=1.0, per_chunk=())
    >>> bounded(float("nan"), 0.0, 1.0).reason
    <Reason.NON_FINITE: 'non_finite'>
    """
    if not math.isfinite(value) or value < low - 1e-6 or value > high + 1e-6:
        return Unscored(Reason.NON_FINITE)
    return Scored(min(max(value, low), high), per_chunk)
