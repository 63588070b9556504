"""The judge that the settings ask for."""

from __future__ import annotations

from collections.abc import Sequence

from consumer.judge_settings import Judge as JudgeSettings
from metrics.judge import Judge, Judgement, JudgeRequest
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored


class NoJudge:
    """Stands where no judge is configured: statements and refusals are still counted, verdicts are not_configured."""

    name = "none"
    identity = "none"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Unscored(Reason.NOT_CONFIGURED)] * len(requests)


def build_judge(settings: JudgeSettings) -> Judge:
    """`lexical` or `none`, ready for use; `local` is built by `consumer.local_judges`, `llm` by
    `consumer.judging.building`.

    Raises:
        ModelError: it cannot be used; what to do is in the message.
    """
    if settings.kind == "none":
        return NoJudge()
    # Late: whoever has no judge does not pay for its word lists.
    from metrics.lexical.judge import LexicalJudge
    from metrics.lexical.model import WeightsError

    try:
        return LexicalJudge()
    except WeightsError as error:
        raise ModelError(f"judge.kind {settings.kind}: {error}") from None
