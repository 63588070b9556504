"""The judges that need no model: the lexical one, and what stands where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metrics.judge import Judgement, JudgeRequest
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored

if TYPE_CHECKING:
    from metrics.lexical.judge import LexicalJudge


class NoJudge:
    """Stands where no judge is configured: statements and refusals are still counted, verdicts are not_configured."""

    name = "none"
    identity = "none"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Unscored(Reason.NOT_CONFIGURED)] * len(requests)


def build_lexical() -> LexicalJudge:
    """The judge, ready for use.

    Raises:
        ModelError: it cannot be used; what to do is in the message.
    """
    # Late: whoever has another judge does not pay for its word lists.
    from metrics.lexical.judge import LexicalJudge
    from metrics.lexical.model import WeightsError

    try:
        return LexicalJudge()
    except WeightsError as error:
        raise ModelError(f"judge.kind lexical: {error}") from None
