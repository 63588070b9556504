"""The calibrated probability that a whole answer is faithful, in [0, 1]: of judges that were calibrated for it.

Faithfulness is a share of statements and says nothing of how sure the judge is; this is one number for the answer, of
which 0.8 means that four of five such answers were faithful on the data that it was calibrated on (Platt, 1999).
"""

from __future__ import annotations

from typing import Protocol

from metrics.faithfulness import definition_of as faithfulness_definition
from metrics.judge import Judgement, JudgeRequest
from metrics.metric import definition
from metrics.outcome import Outcome, Reason, Unscored, bounded
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


def faithful_probability(request: JudgeRequest, judgement: Judgement | Unscored, calibrated: Calibrated) -> Outcome:
    """The probability, or the reason why there is none: the same reasons as for faithfulness."""
    if not request.statements:
        return Unscored(Reason.NO_CLAIMS)
    if isinstance(judgement, Unscored):
        return judgement
    if len(judgement.verdicts) != len(request.statements):
        return Unscored(Reason.JUDGE_INCOMPLETE)
    found = calibrated.faithful_probability(request, judgement)
    return found if isinstance(found, Unscored) else bounded(found, *BOUNDS)


def definition_of(judge_identity: str) -> str:
    """8 hex digits of the formula, the statement splitter and the judge, whose identity holds the curve."""
    return definition(FORMULA, faithfulness_definition(judge_identity))
