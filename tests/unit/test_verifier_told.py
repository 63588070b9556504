"""Chinese questions told as statements, which the verifier is trained on."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.verifier.edits import FALSE
from metrics.verifier.made import made_of
from metrics.verifier.materials import Material
from metrics.verifier.sources import SUPPORTED, UNSUPPORTED
from metrics.verifier.told import LONGEST_ANSWER, told


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("这座桥是哪一年建成的？", "1932年", "这座桥是1932年建成的。"),
        ("這座橋由誰設計?", "林先生", "這座橋由林先生設計。"),
        ("渡轮在哪里靠岸？", "北码头", "渡轮在北码头靠岸。"),
        ("哪个国家出口这种茶叶？", "斯里兰卡", "斯里兰卡出口这种茶叶。"),
        ("展厅里有几个座位？", "80个", "展厅里有80个座位。"),
        ("镇上的主要产业是什么？", "捕鱼", "镇上的主要产业是捕鱼。"),
    ],
)
def test_the_answer_stands_where_the_question_asks(question: str, answer: str, statement: str) -> None:
    assert told(question, answer) == statement


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("为什么渡轮停航？", "大雾"),
        ("谁在什么时候来过？", "老王"),
        ("渡轮停航了吗？", "是的"),
        ("渡轮从哪里出发？", "渡轮从北码头出发"),
        ("船长是谁？", ""),
        ("船长是谁？", "很" * (LONGEST_ANSWER + 1)),
    ],
)
def test_what_cannot_be_told_is_left_alone(question: str, answer: str) -> None:
    assert told(question, answer) is None


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_told_or_left_alone(question: str, answer: str) -> None:
    statement = told(question, answer)
    assert statement is None or statement.endswith("。")


def test_right_and_wrong_answers_are_told_in_the_same_words() -> None:
    text = "这座桥由林建国设计。一九三二年，工程队在陈大明的带领下开工，两年后桥面通车，沿岸居民纷纷前来观看。"
    material = Material(text, "zh_qa", "g", (("这座桥由谁设计？", "林建国", ("陈大明",)),))
    found = set()
    for seed in range(60):
        passage = made_of(material, FALSE, random.Random(seed))
        assert passage is not None
        found |= {(c.text, c.label, c.spans) for c in passage.claims}
    assert ("这座桥由林建国设计。", SUPPORTED, ()) in found
    assert ("这座桥由陈大明设计。", UNSUPPORTED, ((4, 7),)) in found
