"""What is said about quantities beside their value: bounds and the ends of a range."""

from __future__ import annotations

import pytest

from metrics.lexical.bounds import marks
from metrics.lexical.quantities import quantities
from metrics.lexical.words import fold


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
