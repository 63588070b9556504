"""Negating determiners, names in one place, exchanged names, synonyms and table headers, as the judge takes them."""

from __future__ import annotations

import pytest

from metrics.judge import Label
from metrics.lexical.chinese_names import others_in_place, unknown_names
from metrics.lexical.reading import read
from tests.unit.test_lexical_bounds import label

ROOMS = "| Room | Price (EUR) | Size (m²) |\n|---|---|---|\n| Oak | 30 | 14 |\n| Elm | 45 | 20 |"
ROOMS_ZH = "| 房型 | 价格（元） | 面积（平方米） |\n|---|---|---|\n| 松间 | 300 | 14 |\n| 竹间 | 450 | 20 |"


@pytest.mark.parametrize(
    ("context", "right", "wrong"),
    [
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
    ],
)
def test_the_true_one_is_supported_and_the_other_contradicted(context: str, right: str, wrong: str) -> None:
    assert label(context, right) is Label.SUPPORTED
    assert label(context, wrong) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("context", "statement"),
    [
        ("苹果、香蕉、梨都打折。", "梨、香蕉、苹果都打折。"),
        ("The manuscript is kept in the library of Uppsala.", "The library of Uppsala keeps the manuscript."),
        ("The pool has a depth of 3 m and a short slide.", "The pool has a depth of 3 m."),
        ("旅客可自由选择座位。", "旅客可自由选择座位。"),
    ],
)
def test_another_order_that_says_the_same_is_no_conflict(context: str, statement: str) -> None:
    assert label(context, statement) is not Label.CONTRADICTED


def test_only_a_name_between_the_same_neighbours_stands_in_its_place() -> None:
    said = "小说的作者是周明远。"
    names = unknown_names(said, {"小说", "作者"})
    assert [other for _, other in others_in_place(names, said, "该小说的作者是林晓雨，去年出版。")] == ["林晓雨"]
    assert list(others_in_place(names, said, "林晓雨读过该小说，作者不详。")) == []
    assert unknown_names(said, {"周明", "明远"}) == []


def test_the_rows_of_a_table_have_the_units_and_words_of_their_header() -> None:
    row = read(ROOMS).sentences[-1]
    assert [(q.value, q.unit) for q in row.numbers] == [(45.0, "euro"), (20.0, "square_metre")]
    assert "pric" in row.vocabulary
    assert "pric" not in row.terms
    tabs = read("Item\tWeight (kg)\nAnvil\t50\nVice\t8\n").sentences
    assert [(q.value, q.unit) for s in tabs for q in s.numbers] == [(50_000.0, "gram"), (8_000.0, "gram")]
    assert read("a | b (kg)\nc | 5").sentences[-1].numbers[0].unit == ""
