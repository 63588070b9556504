"""What is said about quantities beside their value: bounds, sides, rates, places; and what the judge makes of it."""

from __future__ import annotations

import pytest

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Label, Statement
from metrics.lexical.bounds import marks
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.quantities import quantities
from metrics.lexical.words import fold

JUDGE = LexicalJudge()


def label(context: str, statement: str) -> Label:
    [judgement] = JUDGE.judge([JudgeRequest(None, (Statement(statement, 0, len(statement)),), (Chunk(context),))])
    assert isinstance(judgement, Judgement)
    return judgement.verdicts[0].label


def sizes(text: str) -> list[int]:
    folded = fold(text)
    return [mark.size for mark in marks(folded, quantities(folded))]


@pytest.mark.parametrize(
    "text",
    [
        "over 5 km",
        "at least 5 km",
        "5 km or more",
        "no less than 5 km",
        "not under 5 km",
        "after 5 June",
        "since June 5",
        "not before 5 June",
        "not until 5 June",
        "超过5公里",
        "5公里以上",
        "至少五公里",
        "不得少于5公里",
        "6月5日之后",
        "晚于6月5日",
    ],
)
def test_that_or_more(text: str) -> None:
    assert sizes(text) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "under 5 km",
        "at most 5 km",
        "5 km at most",
        "5 km or less",
        "no more than 5 km",
        "must not weigh more than 5 kg",
        "by 5 June",
        "no later than 5 June",
        "within 5 days",
        "不足5公里",
        "5公里以下",
        "不超过5公里",
        "不得超过5公里",
        "未满5岁",
        "5天内",
        "6月5日前",
    ],
)
def test_that_or_less(text: str) -> None:
    assert sizes(text) == [-1]


@pytest.mark.parametrize(
    "text", ["5 km", "about 5 km", "it has not rained for 5 days", "前5天", "5天后来", "has not featured on 5 June"]
)
def test_no_bound(text: str) -> None:
    assert sizes(text) == [0]


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("from 20 to 30", [-1, 1]),
        ("between 9 and 17", [-1, 1]),
        ("to 30 from 20", [1, -1]),
        ("9:00-17:00", [-1, 1]),
        ("20 and 30", [0, 0]),
        ("从20元涨到30元", [-1, 1]),
        ("由3度升至9度", [-1, 1]),
        ("四月至十月", [-1, 1]),
        ("六至十位", [-1, 1]),
    ],
)
def test_the_ends_of_a_range(text: str, sides: list[int]) -> None:
    folded = fold(text)
    assert [mark.side for mark in marks(folded, quantities(folded))] == sides


@pytest.mark.parametrize(
    ("context", "right", "wrong"),
    [
        ("The fee rose from 20 to 30 euros.", "The fee rose to 30 euros from 20.", "The fee rose from 30 to 20 euros."),
        ("Open between 9 and 17.", "Open from 9 to 17.", "Open from 17 to 9."),
        ("超市每天9点到21点营业。", "超市每天从9点营业到21点。", "超市每天从21点营业到9点。"),
        (
            "Anna scored 20 points and Berta 30.",
            "Berta scored 30 points and Anna 20.",
            "Anna scored 30 points and Berta 20.",
        ),
        (
            "Power use fell from 410 kWh in May to 370 kWh in June.",
            "In June power use was 370 kWh.",
            "In June power use was 410 kWh.",
        ),
        (
            "A parcel of more than 5 kg costs 9 euros.",
            "A parcel over 5 kg costs 9 euros.",
            "A parcel of less than 5 kg costs 9 euros.",
        ),
        ("Bags may weigh at most 5 kg.", "Bags may not weigh more than 5 kg.", "Bags may weigh at least 5 kg."),
        ("Bags may not weigh more than 5 kg.", "Bags may not weigh over 5 kg.", "Bags may weigh more than 5 kg."),
        ("Send complaints before 15 June.", "Send complaints before June 15.", "Send complaints after 15 June."),
        ("A bicycle costs 12 euros an hour.", "A bicycle costs 12 euros per hour.", "A bicycle costs 12 euros a day."),
        ("报名人数超过两百人。", "报名人数超过200人。", "报名人数不足200人。"),
        ("未满18岁不得入场。", "18岁以下不得入场。", "18岁以上不得入场。"),
        ("请在6月1日前提交。", "请在6月1日之前提交。", "请在6月1日后提交。"),
        ("The shop opens before noon.", "The shop opens before noon.", "The shop opens after noon."),
        ("The lamp hangs above the table.", "The lamp hangs above the table.", "The lamp hangs below the table."),
        (
            "The first bus leaves at 5:10, the last one at 23:40.",
            "The last bus leaves at 23:40.",
            "The last bus leaves at 5:10.",
        ),
    ],
)
def test_a_comparison_or_a_place_that_is_turned_is_contradicted(context: str, right: str, wrong: str) -> None:
    assert label(context, right) is Label.SUPPORTED
    assert label(context, wrong) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("context", "statement"),
    [
        ("Bags over 5 kg are not allowed.", "Bags may not be over 5 kg."),
        ("Bags over 5 kg are not allowed.", "Bags under 5 kg are allowed."),
        ("He has not featured for the first team since 5 March.", "He has not featured since 5 March."),
        (
            "Water is best at room temperature (20°C / 68°F), or chilled (6°C / 43°F).",
            "Water is best at room temperature (20°C / 68°F) or chilled (6°C / 43°F).",
        ),
        ("The last six games were won; the first goal fell late.", "The last six games were won."),
    ],
)
def test_the_same_said_otherwise_is_no_conflict(context: str, statement: str) -> None:
    assert label(context, statement) is not Label.CONTRADICTED
