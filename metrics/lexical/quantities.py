"""Numbers, units, dates and clock times of a text, normalised: the same quantity is equal however it is written.

1,000 = 1000 = one thousand = １０００ = 一千; 30% = thirty percent = 百分之三十; 90 minutes = 1.5 hours;
3.5万 = 35,000; March 3, 2021 = 2021-03-03 = 2021年3月3日. Units and number words are in units.toml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from metrics.lexical.numerals import (
    BIG,
    CHINESE_DIGITS,
    CHINESE_SCALES,
    NUMBERS,
    SCALES,
    chinese_number,
    chinese_or_figure,
    english_number,
)
from metrics.lexical.words import any_of, unit_lists

YEAR, MONTH, DAY, CLOCK, CLOCK12, WEEKDAY, ORDINAL = (
    "#year",
    "#month",
    "#day",
    "#clock",
    "#clock12",
    "#weekday",
    "#ordinal",
)
HALF_DAY = 720
"""Minutes: what a clock time without am or pm leaves open."""
_LOOSE = ({"degree", "celsius"}, {"degree", "fahrenheit"}, {"pound", "sterling"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """`value` in `unit` ("" where none is named; `#...` for parts of dates), at `text[start:end]`."""

    value: float
    unit: str
    start: int
    end: int
    approximate: bool = False
    figure: float | None = None
    """The digits as written, before scale and unit: 3.5 of 3.5万."""


def agrees(said: Quantity, found: Quantity) -> bool:
    """Whether what is said may be the quantity that was found: same unit (or none named on one side) and same value.

    A rounded or «more than» number agrees with the exact one: «over 8 million» with 8,537,673.
    """
    if said.unit == "" and found.figure == said.value and said.figure == said.value:
        return True  # «29», said of «29日» or of «29万»
    if CLOCK12 in (said.unit, found.unit) and {said.unit, found.unit} <= {CLOCK, CLOCK12}:
        return said.value % HALF_DAY == found.value % HALF_DAY
    if said.unit != found.unit and not _may_be_bare(said, found) and not _loose(said, found):
        return False
    if math.isclose(said.value, found.value, rel_tol=1e-6, abs_tol=1e-9):
        return True
    # No step of a rounded number is as large as the number: most pairs end here, at a tenth of the cost.
    near = 1.01 if said.approximate else 0.51
    return abs(said.value - found.value) <= near * said.value and _rounded(said, found)


def comparable(said: Quantity, found: Quantity) -> bool:
    """Whether the two measure the same kind of thing, so that one value can contradict the other."""
    if {said.unit, found.unit} <= {CLOCK, CLOCK12}:
        return True
    if said.unit == found.unit == "":
        return _like_a_year(said) == _like_a_year(found)
    return said.unit == found.unit or _loose(said, found)


def _like_a_year(quantity: Quantity) -> bool:
    return 1500 <= quantity.value <= 2100 and quantity.value.is_integer()


def _loose(said: Quantity, found: Quantity) -> bool:
    """Units that name too little to differ: degrees of either scale, pounds of weight or of money."""
    return {said.unit, found.unit} in _LOOSE


def _may_be_bare(said: Quantity, found: Quantity) -> bool:
    pair = {said.unit, found.unit}
    return "" in pair and not pair & {MONTH, DAY, WEEKDAY, ORDINAL, CLOCK, CLOCK12}


def _rounded(said: Quantity, found: Quantity) -> bool:
    if said.value <= 0 or found.value <= 0 or said.unit.startswith("#"):
        return False
    digits_said, digits_found = _digits(said.value), _digits(found.value)
    if digits_said >= digits_found or not (said.approximate or said.value >= 1000 or digits_said >= 2):
        return False
    step = 10.0 ** (math.floor(math.log10(said.value)) - digits_said + 1)
    return abs(said.value - found.value) <= (step if said.approximate else step / 2)


@lru_cache(maxsize=4096)
def _digits(value: float) -> int:
    """Significant digits: 2 for 1,200 and for 3.4."""
    return len(f"{value:.9g}".replace(".", "").split("e")[0].strip("0")) or 1


def quantities(folded: str) -> list[Quantity]:
    """Quantities of a folded text (metrics.lexical.words.fold) in order of their place, without overlaps."""
    if not _MAY_HOLD.search(folded):
        return []
    taken = bytearray(len(folded))
    for mark in _NO_QUANTITY.finditer(folded):
        taken[mark.start() : mark.end()] = b"\1" * (mark.end() - mark.start())
    found: list[Quantity] = []
    for reader in (_dates, _clock_times, _weekdays, _halves, _figures, _word_numbers, _chinese_numbers):
        for quantity in reader(folded):
            if not any(taken[quantity.start : quantity.end]):
                taken[quantity.start : quantity.end] = b"\1" * (quantity.end - quantity.start)
                found.append(quantity)
    found.sort(key=lambda q: q.start)
    return found


_LISTS = unit_lists()
_ORDINALS: Mapping[str, float] = _LISTS["numbers"]["ordinals"]
_MONTHS = {name: k for k, name in enumerate(_LISTS["numbers"]["months"], 1)}
_MONTHS |= {name[:3]: k for name, k in _MONTHS.items()} | {"sept": 9}
_WEEKDAYS = {name: k for k, name in enumerate(_LISTS["numbers"]["weekdays"], 1)}


def _unit_table() -> dict[str, tuple[str, float]]:
    """Surface form → canonical unit and how many of it. The first form of an entry may name its canonical unit."""
    table = {}
    for name, (factor, *forms) in _LISTS["units"].items():
        base = forms[0] if forms[0] in _LISTS["units"] else name
        for form in forms if base == name else forms[1:]:
            table[form] = (base, float(factor))
    return table


UNITS = _unit_table()


_WORD_UNITS = any_of([u for u in UNITS if u[-1].isascii() and u[-1].isalnum()])
_SIGN_UNITS = any_of([u for u in UNITS if not (u[-1].isascii() and u[-1].isalnum()) and u not in "$€£¥₹"])
_UNIT = rf"(?P<unit>(?:{_WORD_UNITS})(?![a-z0-9])|{_SIGN_UNITS})"
_CURRENCY = r"(?P<currency>us\$|hk\$|nt\$|[$€£¥₹]|usd|rmb|eur|gbp)"
_HAN_NUMBER = "零〇一二两三四五六七八九十百千万亿"
_COUNTERS = _LISTS["counters"]["chinese"]
COUNTERS = frozenset(_COUNTERS) | {unit for unit in UNITS if len(unit) == 1 and not unit.isascii()}
"""Single characters that may follow a number in a script without spaces."""

_WORDS_OF_NUMBERS = [word[:4] for word in (*NUMBERS, *_ORDINALS, *_MONTHS, *_WEEKDAYS)]
_MAY_HOLD = re.compile(
    rf"\d|[{_HAN_NUMBER}半]|[周星礼][一二三四五六日天期拜]|{'|'.join(_WORDS_OF_NUMBERS)}|dozen|hundred|thousand|illion|half"
)
STAND_IN = r"\[[a-z][a-z0-9_]{0,30}-\d{1,6}\]"
"""What stands, folded, for a personal datum that was taken out of a text: one word, and its number is no quantity."""
_NO_QUANTITY = re.compile(
    rf"{STAND_IN}|"
    r"^\s*[(（]?\d{1,2}[.)）、]\s|\b(?:passages?|documents?|sources?|contexts?|steps?)\s\d{1,2}\b"
)
"""Numbers that only count: of a list, of a passage."""
_FIGURE = re.compile(
    rf"(?:{_CURRENCY}\s?)?(?<![a-z0-9_.])(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)(?!\d)"
    r"(?:st|nd|rd|th|s)?"
    r"(?P<scale>\s?(?:万亿|[百千万亿]|(?:hundred|thousand|million|billion|trillion|dozen|bn|mn|k)(?![a-z])))?"
    rf"(?:[\s-]?{_UNIT})?"
)
_ORDINAL_FIGURE = re.compile(r"(?<![a-z0-9_.])(\d+)(?:st|nd|rd|th)\b|第(\d+|[零〇一二两三四五六七八九十百]+)(?![周期])")
_PERCENT_OF = re.compile(rf"百分之(\d+(?:\.\d+)?|[{_HAN_NUMBER}点]+)")
_DISCOUNT = re.compile(r"([一二三四五六七八九]{1,2}|\d(?:\.\d|\d)?)折(?!页|叠)")
_MONTH_NAME = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"(?<![a-z0-9])(?:(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+)?({_MONTH_NAME})(?![a-z])\.?"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?(?!\d|[:%]|\.\d))?(?:,?\s+(\d{4})(?!\d))?"
)
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_CHINESE_DATE = re.compile(
    r"(?:(\d{4}|[零〇一二三四五六七八九]{4})年)?(?<!\d)(\d{1,2}|十[一二]?|[一二三四五六七八九])月份?"
    r"(?:(\d{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])[日号])?"
)
_CHINESE_YEAR = re.compile(r"(?<!\d)(\d{4}|[一二][零〇一二三四五六七八九]{3})年")
_TIME = re.compile(r"(?<![\d:])(\d{1,2})(?::(\d{2})(?!\d))?\s?(a\.?m\b\.?|p\.?m\b\.?|noon)?(?![\d:])")
_CHINESE_TIME = re.compile(
    r"(上午|下午|早上|早晨|晚上|凌晨|中午|傍晚|夜里)?(\d{1,2}|[一二两三四五六七八九十]{1,3})[点时](?!间)(?:(半)|(\d{1,2}|[一二三四五六七八九十]{1,3})分?)?"
)
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})s?\b|(?:星期|周|礼拜)([一二三四五六日天])(?![年])")
_NUMBER_WORD = f"(?:{any_of(list(NUMBERS))}|hundred|thousand|million|billion|trillion|dozen)"
_WORDS = re.compile(
    rf"\b(?:(half\s+an?|an?)\s+)?({_NUMBER_WORD}(?:(?:(?<=red|and|ion)\s+and\s+|[\s-]+){_NUMBER_WORD})*)\b(?:[\s-]?{_UNIT})?"
)
_HALF = re.compile(
    rf"\bhalf\s+(?:an?\s+)?{_UNIT}|(?:(?P<whole>\d{{1,2}}|[一两二三四五六七八九十])(?:个|年|天))?半(?:个)?(?P<han>年|天|小时|月)"
    r"|一半|\bhalf\b(?!-)|(?P<year>[\d一两二三四五六七八九十])年半"
)
_ORDINAL_WORD = re.compile(rf"\b({'|'.join(_ORDINALS)})\b")
_CHINESE = re.compile(rf"([{_HAN_NUMBER}]+(?:点[零〇一二三四五六七八九]+)?)({_SIGN_UNITS}|[{_COUNTERS}]|成)?")
_RANGE_ON = re.compile(rf"[至到~-](?:\d|[{_HAN_NUMBER}])")
"""Behind the first number of a range, which needs no unit of its own: 六至十位."""
_IDIOM = re.compile(r"(?:万一|三明治|一一|三三两两|千万|统一|唯一|十分|百万富翁|五花八门|千方百计|一二)")
_APPROXIMATE = re.compile(
    rf"(?:\b(?:{any_of(_LISTS['numbers']['approximate_english'])})\s+(?:\w+\s+)?|"
    rf"{any_of(_LISTS['numbers']['approximate_chinese'])})[$€£¥₹]?$"
)


def _approximate(text: str, start: int) -> bool:
    return bool(_APPROXIMATE.search(text, max(0, start - 24), start))


_WORDS_TOO = frozenset(
    ("may", "march", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec")
)
"""Names of months that are other words too, or short forms of them: alone they are no month."""
_IN_MONTH = ("in ", "since ", "until ", "during ", "in early ", "in late ")
"""What makes a month of words that mean other things too: «in May», «in March»."""


def _dates(text: str) -> Iterator[Quantity]:
    for m in _DATE.finditer(text):
        day, name, after, year = m.groups()
        bare = not (day or after or year)
        if bare and name in _WORDS_TOO and not text.endswith(_IN_MONTH, 0, m.start(2)):
            continue
        yield Quantity(_MONTHS[name], MONTH, *m.span(2))
        for group in (1, 3):
            if m[group]:
                yield Quantity(float(m[group]), DAY, *m.span(group))
        if year:
            yield Quantity(float(year), YEAR, *m.span(4))
    for m in _ISO_DATE.finditer(text):
        for group, unit in ((1, YEAR), (2, MONTH), (3, DAY)):
            yield Quantity(float(m[group]), unit, *m.span(group))
    for m in _CHINESE_DATE.finditer(text):
        for group, unit in ((1, YEAR), (2, MONTH), (3, DAY)):
            if m[group]:
                end = m.end(group) + 1
                value = chinese_or_figure(m[group], as_digits=unit == YEAR)
                yield Quantity(value, unit, m.start(group), end, figure=value)
    for m in _CHINESE_YEAR.finditer(text):
        yield Quantity(chinese_or_figure(m[1], as_digits=True), YEAR, *m.span())


def _clock_times(text: str) -> Iterator[Quantity]:
    for m in _TIME.finditer(text):
        hour, minute, half = m.groups()
        if (minute is None and half is None) or int(hour) > 24 or int(minute or 0) > 59:
            continue
        value = int(hour) * 60 + int(minute or 0)
        if half:
            value = value % HALF_DAY + (HALF_DAY if half[0] in "pn" else 0)
        yield Quantity(value, CLOCK if half or int(hour) > 12 else CLOCK12, *m.span())
    for m in _CHINESE_TIME.finditer(text):
        part, hour_text, half_hour, minute_text = m.groups()
        hour_value = chinese_or_figure(hour_text)
        if hour_value > 24 or (hour_text in ("一", "两") and not part):
            continue
        value = int(hour_value * 60 + (30 if half_hour else chinese_or_figure(minute_text) if minute_text else 0))
        if part in ("下午", "晚上", "傍晚", "夜里") and value < HALF_DAY:
            value += HALF_DAY
        yield Quantity(value, CLOCK if part or hour_value > 12 else CLOCK12, *m.span())


def _weekdays(text: str) -> Iterator[Quantity]:
    for m in _WEEKDAY.finditer(text):
        value = _WEEKDAYS[m[1]] if m[1] else "一二三四五六日天".index(m[2]) + 1
        yield Quantity(min(value, 7), WEEKDAY, *m.span())


def _figures(text: str) -> Iterator[Quantity]:
    for m in _PERCENT_OF.finditer(text):
        yield Quantity(chinese_or_figure(m[1]), "percent", *m.span())
    for m in _DISCOUNT.finditer(text):  # 八五折 = 8.5折 is 85 % of the price, 五折 is 50 %
        digits = m[1].replace(".", "") if m[1][0].isdecimal() else "".join(str(CHINESE_DIGITS[c]) for c in m[1])
        yield Quantity(float(digits.ljust(2, "0")), "discount", *m.span())
    for m in _ORDINAL_FIGURE.finditer(text):
        yield Quantity(chinese_or_figure(m[1] or m[2]), ORDINAL, *m.span())
    for m in _FIGURE.finditer(text):
        value = float(m["number"].replace(",", "")) if len(m["number"]) < 300 else math.inf
        if not math.isfinite(value):
            continue
        figure = value
        scale = (m["scale"] or "").strip()
        value *= SCALES.get(scale) or BIG.get(scale) or CHINESE_SCALES.get(scale) or 1
        unit, factor = UNITS.get(m["unit"] or m["currency"] or "", ("", 1.0))
        start = m.start("currency") if m["currency"] else m.start("number")
        yield Quantity(value * factor, unit, start, m.end(), _approximate(text, start), figure)


def _halves(text: str) -> Iterator[Quantity]:
    for m in _HALF.finditer(text):
        if m["unit"]:
            unit, factor = UNITS[m["unit"]]
            yield Quantity(0.5 * factor, unit, *m.span())
        elif m["han"]:
            unit, factor = UNITS["个月" if m["han"] == "月" else m["han"]]
            whole = chinese_or_figure(m["whole"]) if m["whole"] else 0.0
            yield Quantity((whole + 0.5) * factor, unit, *m.span())
        elif m["year"]:
            yield Quantity((chinese_or_figure(m["year"]) + 0.5) * 12, "month", *m.span())
        else:
            yield Quantity(50.0, "percent", *m.span())


def _word_numbers(text: str) -> Iterator[Quantity]:
    for m in _WORDS.finditer(text):
        value = english_number(m[2]) * (0.5 if (m[1] or "").startswith("half") else 1)
        unit, factor = UNITS.get(m["unit"] or "", ("", 1.0))
        if m[2] in ("one", "zero") and not unit:
            continue
        yield Quantity(value * factor, unit, m.start(), m.end(), _approximate(text, m.start()), value)
    for m in _ORDINAL_WORD.finditer(text):
        yield Quantity(_ORDINALS[m[1]], ORDINAL, *m.span())


def _chinese_numbers(text: str) -> Iterator[Quantity]:
    for m in _CHINESE.finditer(text):
        number, after = m.groups()
        lone = len(number) == 1 and not after and not (number in CHINESE_DIGITS and _RANGE_ON.match(text, m.end()))
        if lone or (_IDIOM.match(text, m.start()) and not after) or number in "百千万亿":
            continue
        if number == "一" and after not in UNITS:
            continue
        value = chinese_number(number)
        if value is None:
            continue
        unit, factor = ("percent", 10.0) if after == "成" else UNITS.get(after or "", ("", 1.0))
        end = m.end() if after and after not in _COUNTERS else m.end(1)
        yield Quantity(value * factor, unit, m.start(), end, _approximate(text, m.start()), value)
