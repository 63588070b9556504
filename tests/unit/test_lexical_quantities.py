"""Numbers, units and dates as the lexical judge reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.lexical.quantities import agrees, chinese_number, comparable, quantities
from metrics.lexical.words import fold, stem


def read(text: str) -> list[tuple[float, str]]:
    return [(q.value, q.unit) for q in quantities(fold(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000 = 1000 = one thousand = １，０００ = 一千", [(1000.0, "")] * 5),
        ("30% is thirty percent is 百分之三十 is 三成 is 30％", [(30.0, "percent")] * 5),
        ("90 minutes, 1.5 hours, 一个半小时, 1.5小时", [(5400.0, "second")] * 4),
        ("3.5万元 35,000元 三万五千元", [(35000.0, "yuan")] * 3),
        ("$1.2 million, 1,200,000 dollars", [(1.2e6, "dollar")] * 2),
        ("two hundred and five litres", [(205.0, "litre")]),
        ("12 months, one year, 一年", [(12.0, "month")] * 3),
        ("3 km and 3000 metres and 三公里", [(3000.0, "metre")] * 3),
        ("5公斤 10斤", [(5000.0, "gram")] * 2),
        ("7 business days, 7个工作日", [(7.0, "workday")] * 2),
        ("Monday, 星期一, 周一", [(1.0, "#weekday")] * 3),
        ("6 pm, 下午六点, 18:00", [(1080.0, "#clock")] * 3),
        ("third, 3rd, 第三", [(3.0, "#ordinal")] * 3),
        ("half of them, 一半", [(50.0, "percent")] * 2),
        ("2. Rub the roast", []),
        ("Passage 3 says so", []),
        ("one of the rooms, 一些房间, 千万不要, 统一, 十分好", []),
        ("it may rain, we march on", []),
    ],
)
def test_what_is_read(text: str, expected: list[tuple[float, str]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "March 3, 2021",
        "3 March 2021",
        "2021-03-03",
        "2021/3/3",
        "2021年3月3日",
        "二〇二一年三月三日",
        "3rd of March, 2021",
    ],
)
def test_one_date_in_every_form(text: str) -> None:
    assert sorted(read(text), key=lambda q: q[1]) == [(3.0, "#day"), (3.0, "#month"), (2021.0, "#year")]


@pytest.mark.parametrize(
    ("said", "found", "agree"),
    [
        ("over 8 million", "8,537,673", True),
        ("over 8 million", "9,537,673", False),
        ("3.1", "3.14", True),
        ("441", "443", False),
        ("9:30", "9:30 pm", True),
        ("9:30 am", "9:30 pm", False),
        ("29", "29日", True),
        ("30 days", "30 hours", False),
        ("2021", "2021年", True),
        ("375°F", "375 degrees", True),
    ],
)
def test_agreement(said: str, found: str, agree: bool) -> None:
    [one], others = quantities(fold(said)), quantities(fold(found))
    assert any(agrees(one, other) for other in others) is agree


def test_a_year_is_no_rival_of_a_small_number() -> None:
    [year], [small] = quantities("2006"), quantities("12")
    assert not comparable(year, small)


@given(st.integers(min_value=1, max_value=99_999_999))
def test_chinese_numerals_read_back(number: int) -> None:
    assert chinese_number(written(number)) == number


def written(number: int) -> str:
    """The usual Chinese numeral."""
    if number >= 10_000:
        low = number % 10_000
        return written(number // 10_000) + "万" + (("零" if low < 1000 else "") + written(low) if low else "")
    text, zero = "", False
    for power, mark in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // power % 10
        if digit:
            text += ("零" if zero else "") + "零一二三四五六七八九"[digit] + mark
            zero = False
        elif text:
            zero = True
    return text


@given(st.text())
def test_spans_lie_in_order_in_the_text(text: str) -> None:
    folded = fold(text)
    assert len(folded) == len(text)
    end = 0
    for quantity in quantities(folded):
        assert end <= quantity.start < quantity.end <= len(text)
        end = quantity.end


def test_stems_join_inflections_and_keep_others_apart() -> None:
    assert len({stem(w) for w in ("change", "changes", "changed", "changing")}) == 1
    assert stem("bought") == stem("buy") == stem("buying")
    assert stem("cities") == stem("city")
    assert stem("universe") != stem("university")


@pytest.mark.parametrize("text", ["三点点", "百分之点点", "点", "三点百"])
def test_what_only_looks_like_a_chinese_number_is_none(text: str) -> None:
    assert chinese_number(text) is None
