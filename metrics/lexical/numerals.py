"""Numbers in words, English and Chinese, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from metrics.lexical.words import unit_lists

_LISTS = unit_lists()
NUMBERS: Mapping[str, float] = _LISTS["numbers"]["english"]
SCALES: Mapping[str, float] = _LISTS["numbers"]["scales"]
CHINESE_DIGITS = {c: k for k, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000}
BIG = {"万": 10**4, "亿": 10**8, "万亿": 10**12}


def english_number(words: str) -> float:
    total = current = 0.0
    for word in re.split(r"[\s-]+", words):
        if word == "and":
            continue
        scale = SCALES.get(word)
        if scale is None:
            current += NUMBERS[word]
        elif scale >= 1000:
            total += (current or 1) * scale
            current = 0.0
        else:
            current = (current or 1) * scale
    return total + current


def chinese_or_figure(text: str, *, as_digits: bool = False) -> float:
    if text[0].isdecimal():
        return float(text)  # of any script: १२ is 12
    if as_digits:
        return float("".join(str(CHINESE_DIGITS[c]) for c in text))
    return chinese_number(text) or 0.0


def chinese_number(text: str) -> float | None:
    """The value of a Chinese numeral, None where the characters are none.

    >>> [chinese_number(text) for text in ("三十", "一千二百万", "两万五", "二〇二一", "三点五")]
    [30.0, 12000000.0, 25000.0, 2021.0, 3.5]
    """
    whole, _, fraction = text.partition("点")
    if not whole or len(whole) > 24:
        return None
    if len(whole) > 1 and all(c in CHINESE_DIGITS for c in whole):
        value = float("".join(str(CHINESE_DIGITS[c]) for c in whole))
    else:
        total = section = digit = 0.0
        last = 1.0
        for c in whole:
            if c in CHINESE_DIGITS:
                digit = CHINESE_DIGITS[c]
                if c in "零〇":
                    last = 10.0
            elif c in CHINESE_SCALES:
                last = CHINESE_SCALES[c]
                section += (digit or 1) * last
                digit = 0.0
            elif c in BIG:
                last = BIG[c]
                total = (total + section + digit) * last if total < last else total + (section + digit) * last
                section = digit = 0.0
            else:
                return None
        value = total + section + (digit * last / 10 if last > 10 and digit else digit)
    if fraction:
        if not all(c in CHINESE_DIGITS for c in fraction):
            return None
        value += float("0." + "".join(str(CHINESE_DIGITS[c]) for c in fraction))
    return value
