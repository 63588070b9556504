"""A reason quotes the answer and the evidence as they are written, not the stems that were compared."""

from __future__ import annotations

import pytest

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.synonyms import in_words_of
from metrics.statements import claims_of


def reason(answer: str, context: str) -> str:
    [found] = LexicalJudge().judge([JudgeRequest("?", claims_of(answer).statements, (Chunk(context),))])
    assert isinstance(found, Judgement)
    return found.verdicts[0].reason


@pytest.mark.parametrize(
    ("answer", "context", "quoted"),
    [
        (
            "Visitors find the climb up the old tower difficult.", "Visitors find the climb up the old tower easy.",
            "opposites: the answer says «difficult», the evidence «easy»",
        ),
        (
            "The office is not replacing badges of visitors.", "The office is replacing badges of visitors.",
            "negation: the answer says «not replacing», the evidence «replacing»",
        ),
        (
            "Popeye created Segar.", "Segar created Popeye.",
            "turned round: the answer says «Popeye created Segar», the evidence «Segar created Popeye»",
        ),
        (
            "In 2019 the company moved its offices to Missouri.", "In 2019 the company moved its offices to the U.S.A.",
            "the answer names «Missouri», the evidence «U.S.A.»",
        ),
        (
            "會議室週日開放給所有員工使用。", "会议室周六开放给所有员工使用。",
            "the answer says «週日», the evidence «周六»",
        ),
    ],
)  # fmt: skip
def test_a_reason_quotes_words_as_they_are_written(answer: str, context: str, quoted: str) -> None:
    assert reason(answer, context) == quoted


def test_only_the_words_that_another_stands_for_are_put_into_simplified_characters() -> None:
    said = "會議室能容納20人，開放時間為週日。"
    assert in_words_of(["会议室可容纳20人。"], [said]) == ["會議室可容納20人，開放時間為週日。"]
    assert in_words_of(["会议室。"], ["會議室能開窗。"]) == ["會議室能開窗。"]
