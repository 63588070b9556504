"""One true and one false statement of a context, and what only reads otherwise: what the lexical judge says of them."""

from __future__ import annotations

import pytest

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Label, Statement
from metrics.lexical.judge import LexicalJudge

JUDGE = LexicalJudge()
ROOMS = "| Room | Price (EUR) | Size (m²) |\n|---|---|---|\n| Oak | 30 | 14 |\n| Elm | 45 | 20 |"
ROOMS_ZH = "| 房型 | 价格（元） | 面积（平方米） |\n|---|---|---|\n| 松间 | 300 | 14 |\n| 竹间 | 450 | 20 |"

QUANTITIES = [
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
]
"""A bound, a side, a rate or a place of a quantity is turned: context, true, false."""
SLOTS = [
    ("The bread contains no gluten.", "The bread does not contain gluten.", "The bread contains gluten."),
    ("The bread does not contain gluten.", "The bread contains no gluten.", "The bread contains gluten."),
    ("The bread contains gluten.", "The bread contains gluten.", "The bread contains no gluten."),
    (
        "No dogs are allowed in the garden.",
        "Dogs are not allowed in the garden.",
        "Dogs are allowed in the garden.",
    ),
    (
        "The lamp works without a battery.",
        "The lamp works without a battery.",
        "The lamp does not work without a battery.",
    ),
    ("打印机没有网络也能工作。", "打印机没有网络也能工作。", "打印机没有网络就不能工作。"),
    ("该麦片不含坚果。", "该麦片没有坚果。", "该麦片含有坚果。"),
    ("Dr Farrow of the Marine Institute gave the talk.", "Dr Farrow gave the talk.", "Dr Benning gave the talk."),
    (
        "The bakery is left of the station.",
        "The bakery is left of the station.",
        "The bakery is right of the station.",
    ),
    (
        "The archive is on the first floor.",
        "The archive is on the first floor.",
        "The archive is on the last floor.",
    ),
    ("合同由王建国代表甲方签署。", "王建国代表甲方签署了合同。", "李建军代表甲方签署了合同。"),
    ("装订课程由欧老师讲授。", "装订课程由欧老师讲授。", "装订课程由林老师讲授。"),
    ("该药品由华康制药生产。", "这种药品由华康制药生产。", "这种药品由仁和制药生产。"),
    ("工厂设在佛山。", "工厂位于佛山。", "工厂位于东莞。"),
    ("刘强把自行车借给了张伟。", "刘强把自行车借给了张伟。", "张伟把自行车借给了刘强。"),
    ("小王比小李高。", "小王比小李高。", "小李比小王高。"),
    ("光明小学在育才小学之前建成。", "光明小学在育才小学之前建成。", "育才小学在光明小学之前建成。"),
    ("会议于周五举行。", "会议在周五举办。", "会议在周三举办。"),
    ("护照将于2027年5月到期。", "护照有效期至2027年5月。", "护照有效期至2027年8月。"),
    ("学生可以购买半价票。", "学生能买半价票。", "学生不能买半价票。"),
    ("入园不收费。", "入园免费。", "入园收费。"),
    ("会员可享受八五折优惠。", "会员可享受8.5折优惠。", "会员可享受五折优惠。"),
    (ROOMS, "The price of the Oak room is 30 euros.", "The price of the Oak room is 30 dollars."),
    (ROOMS, "Room: Oak; Price (EUR): 30", "Room: Oak; Price (USD): 30"),
    (ROOMS_ZH, "竹间的面积为20平方米。", "竹间的面积为20平方公里。"),
]
"""A denial, a name or what stands in its place, an order or the unit of a table header is turned."""
SAME_QUANTITIES = [
    ("Bags over 5 kg are not allowed.", "Bags may not be over 5 kg."),
    ("Bags over 5 kg are not allowed.", "Bags under 5 kg are allowed."),
    ("He has not featured for the first team since 5 March.", "He has not featured since 5 March."),
    (
        "Water is best at room temperature (20°C / 68°F), or chilled (6°C / 43°F).",
        "Water is best at room temperature (20°C / 68°F) or chilled (6°C / 43°F).",
    ),
    ("The last six games were won; the first goal fell late.", "The last six games were won."),
]
SAME_ORDER = [
    ("苹果、香蕉、梨都打折。", "梨、香蕉、苹果都打折。"),
    ("The manuscript is kept in the library of Uppsala.", "The library of Uppsala keeps the manuscript."),
    ("The pool has a depth of 3 m and a short slide.", "The pool has a depth of 3 m."),
    ("旅客可自由选择座位。", "旅客可自由选择座位。"),
]


def label(context: str, statement: str) -> Label:
    [judgement] = JUDGE.judge([JudgeRequest(None, (Statement(statement, 0, len(statement)),), (Chunk(context),))])
    assert isinstance(judgement, Judgement)
    return judgement.verdicts[0].label


@pytest.mark.parametrize(("context", "right", "wrong"), [*QUANTITIES, *SLOTS])
def test_the_true_one_is_supported_and_the_other_contradicted(context: str, right: str, wrong: str) -> None:
    assert label(context, right) is Label.SUPPORTED
    assert label(context, wrong) is Label.CONTRADICTED


@pytest.mark.parametrize(("context", "statement"), [*SAME_QUANTITIES, *SAME_ORDER])
def test_the_same_said_otherwise_is_no_conflict(context: str, statement: str) -> None:
    assert label(context, statement) is not Label.CONTRADICTED
