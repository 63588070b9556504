"""The calibrated probability that a whole answer is faithful, in [0, 1]: of judges that were calibrated for it.

Faithfulness is a share of statements and says nothing of how sure the judge is; this is one number for the answer, of
which 0.8 means that four of five such answers were faithful on the data that it was calibrated on (Platt, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from metrics.faithfulness import complete
from metrics.faithfulness import definition_of as faithfulness_definition
from metrics.judge import Judgement, JudgeRequest
from metrics.metric import definition
from metrics.outcome import Outcome, Unscored, bounded
from metrics.ranges import FAITHFUL_PROBABILITY

NAME = FAITHFUL_PROBABILITY
BOUNDS = (0.0, 1.0)
FORMULA = "faithful_probability/curve/1"
"""Part of the definition, with that of the faithfulness whose verdicts it is made of."""


class Calibrated(Protocol):
    """A judge that knows how sure it is of a whole answer."""

    @property
    def threshold(self) -> float | None:
        """The probability under which an answer is flagged where nobody says otherwise; None: none is."""
        ...

    def faithful_probability(self, request: JudgeRequest, judgement: Judgement) -> float | Unscored:
        """Of the whole answer, by its verdicts: one a statement of the request."""
        ...


@dataclass(frozen=True, slots=True)
class FaithfulProbability:
    """The probability as a metric of the verdicts of `judge`."""

    judge: Calibrated

    @property
    def name(self) -> str:
        return NAME

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS

    @property
    def threshold(self) -> float | None:
        return self.judge.threshold

    def definition(self, judge_identity: str) -> str:
        """8 hex digits of the formula, the statement splitter and the judge, whose identity holds the curve."""
        return definition(FORMULA, faithfulness_definition(judge_identity))

    def score(self, request: JudgeRequest, judgement: Judgement | Unscored) -> Outcome:
        """The probability, or the reason why there is none: the same reasons as for faithfulness."""
        said = complete(request.statements, judgement)
        if isinstance(said, Unscored):
            return said
        found = self.judge.faithful_probability(request, said)
        return found if isinstance(found, Unscored) else bounded(found, *BOUNDS)
