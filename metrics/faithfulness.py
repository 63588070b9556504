"""Faithfulness: supported statements / all statements of an answer, in [0, 1] (RAGAS, arXiv:2309.15217)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metrics.event import Event
from metrics.judge import Judgement, JudgeRequest, Label, Statement, Verdict
from metrics.language import language_of
from metrics.metric import definition
from metrics.outcome import Outcome, Reason, Unscored, bounded
from metrics.statements import VERSION as STATEMENTS_VERSION
from metrics.statements import Claims, claims_of

NAME = "faithfulness"
BOUNDS = (0.0, 1.0)
FORMULA = f"faithfulness/supported-share/1/{STATEMENTS_VERSION}"
"""Part of the definition, with the judge's identity: `definition(FORMULA, judge.identity)`."""

LOWEST = 2
"""How many of the least supported statements speak for the whole answer in `answer_log_odds`."""
LOWEST_SHARE = 0.5
"""Their share of it; the rest is the mean over all statements."""
_LIMIT = 1e-6


@dataclass(frozen=True, slots=True)
class Asked:
    """What an event gives a judge to do: the claims of its answer, and the request or why there is none."""

    claims: Claims
    request: JudgeRequest | Unscored


@dataclass(frozen=True, slots=True)
class Counts:
    """Statements of one answer by verdict."""

    supported: int = 0
    contradicted: int = 0
    not_found: int = 0

    @property
    def total(self) -> int:
        return self.supported + self.contradicted + self.not_found


def ask(event: Event, similarities: tuple[float | None, ...] = ()) -> Asked:
    """Split the answer and make the request. `similarities`: of the contexts to the answer, see `JudgeRequest`.

    Reasons, the first that holds: empty_answer; no_prose, no_claims (a refusal among them); no_context.
    """
    claims = claims_of(event.answer)
    if claims.reason is not None:
        return Asked(claims, Unscored(claims.reason))
    if not any(chunk.text.strip() for chunk in event.contexts):
        return Asked(claims, Unscored(Reason.NO_CONTEXT))
    turns = tuple(turn.content for turn in event.conversation if turn.role == "user" and turn.content.strip())
    language = language_of(event.answer)
    answer = event.answer or ""
    request = JudgeRequest(event.question, claims.statements, event.contexts, turns, language, similarities, answer)
    return Asked(claims, request)


def faithfulness(statements: Sequence[Statement], judgement: Judgement | Unscored) -> Outcome:
    """Supported / all. Verdicts belong to statements by index; too few or too many: `judge_incomplete`, never support.

    >>> faithfulness([], Judgement(()))
    Unscored(reason=<Reason.NO_CLAIMS: 'no_claims'>)
    """
    said = complete(statements, judgement)
    if isinstance(said, Unscored):
        return said
    return bounded(count(said.verdicts).supported / len(statements), *BOUNDS)


def complete(statements: Sequence[Statement], judgement: Judgement | Unscored) -> Judgement | Unscored:
    """The judgement where every statement has a verdict and there is one at all; else why nothing is made of it."""
    if not statements:
        return Unscored(Reason.NO_CLAIMS)
    if isinstance(judgement, Judgement) and len(judgement.verdicts) != len(statements):
        return Unscored(Reason.JUDGE_INCOMPLETE)
    return judgement


def count(verdicts: Sequence[Verdict]) -> Counts:
    """How many statements got which verdict."""
    labels = [verdict.label for verdict in verdicts]
    return Counts(labels.count(Label.SUPPORTED), labels.count(Label.CONTRADICTED), labels.count(Label.NOT_FOUND))


def answer_log_odds(verdicts: Sequence[Verdict]) -> float:
    """`summed_up` of the verdicts' log-odds of support. For rankings and calibration; faithfulness itself is a share.

    Raises:
        ValueError: no verdicts.
    """
    return summed_up([log_odds(verdict.probability) for verdict in verdicts])


def summed_up(statements: Sequence[float]) -> float:
    """One number for a whole answer: half the mean of its two lowest statements' log-odds, half the mean of all.

    An answer is as good as its worst statements, but the lowest ones alone are noisy in long answers, and the mean
    alone hides one bad sentence in ten. 0 is even odds.

    Raises:
        ValueError: no statement.
    """
    if not statements:
        raise ValueError("no verdicts, so nothing to sum up")
    ordered = sorted(statements)
    lowest = ordered[:LOWEST]
    return LOWEST_SHARE * sum(lowest) / len(lowest) + (1.0 - LOWEST_SHARE) * sum(ordered) / len(ordered)


def log_odds(probability: float) -> float:
    """log(p / (1 - p)), with p kept 1e-6 away from 0 and 1."""
    p = min(max(probability, _LIMIT), 1.0 - _LIMIT)
    return math.log(p / (1.0 - p))


def definition_of(judge_identity: str) -> str:
    """8 hex digits of the formula, the statement splitter and the judge."""
    return definition(FORMULA, judge_identity)
