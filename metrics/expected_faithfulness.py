"""Faithfulness with the judge's doubt in it: the mean probability of an answer's statements to be supported, in [0, 1].

Faithfulness counts a statement that the judge is hardly sure of as fully as one that it is certain of, so an answer of
three statements has four values only. This is its expectation where every statement is supported with the probability
that the judge gives it: finer, and closer to what people say who rate by degrees (docs/statistics.md). The mean over
sentences is that of SummaC (Laban et al., 2022, arXiv:2111.09525), of calibrated probabilities here.
"""

from __future__ import annotations

from dataclasses import dataclass

from metrics.faithfulness import complete
from metrics.faithfulness import definition_of as faithfulness_definition
from metrics.judge import Judgement, JudgeRequest
from metrics.metric import definition
from metrics.outcome import Outcome, Unscored, bounded
from metrics.ranges import EXPECTED_FAITHFULNESS

NAME = EXPECTED_FAITHFULNESS
BOUNDS = (0.0, 1.0)
FORMULA = "expected_faithfulness/mean-probability/1"
"""Part of the definition, with that of the faithfulness whose verdicts it is made of."""


@dataclass(frozen=True, slots=True)
class ExpectedFaithfulness:
    """The mean probability as a metric of a judge's verdicts."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS

    @property
    def threshold(self) -> float | None:
        """None ships: what is low depends on how sure the judge is of answers like yours."""
        return None

    def definition(self, judge_identity: str) -> str:
        """8 hex digits of the formula, the statement splitter and the judge."""
        return definition(FORMULA, faithfulness_definition(judge_identity))

    def score(self, request: JudgeRequest, judgement: Judgement | Unscored) -> Outcome:
        """The mean, or the reason why there is none: the same reasons as for faithfulness."""
        said = complete(request.statements, judgement)
        if isinstance(said, Unscored):
            return said
        return bounded(sum(verdict.probability for verdict in said.verdicts) / len(said.verdicts), *BOUNDS)
