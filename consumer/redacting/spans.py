"""A personal value in a text, and the building blocks that every pattern for one shares.

Everything is linear in the length of the text: no pattern repeats without a bound something that another repetition
beside it can also take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DASH = r"\-\u2010-\u2015\u2212－"
SPACE = r" \u00a0\u2009\u202f\u3000\u200b\u00ad"
BEFORE = r"(?<![0-9A-Za-z])(?<![0-9]\.)(?<![$¥￥€£])"
"""No letter or digit may touch a number, and it is neither the fraction of a decimal nor an amount of money."""
AFTER = r"(?![0-9A-Za-z])(?!\.[0-9])(?![%％元円万亿])"
LOOK_BACK = 28
"""Characters before a number that may say what it is."""


@dataclass(frozen=True, slots=True)
class Span:
    """A personal value in a text, `text[start:end]`. Two spellings of one value have the same `key`."""

    start: int
    end: int
    kind: str
    """`EMAIL`, `PHONE`, `CARD`, `ID`, or the name of a user's own pattern."""
    key: str
    country: str = ""
    """Calling code of a phone number that says it; without it the number may be the same as one that does."""


def accepted(
    pattern: re.Pattern[str], text: str, low: int, high: int, accept: Callable[[re.Match[str]], Span | None]
) -> Iterator[Span]:
    """Like finditer, but goes on right after the *start* of what is refused: a real number may begin inside it."""
    while match := pattern.search(text, low, high):
        span = accept(match)
        if span is None:
            low = match.start() + 1
        else:
            yield span
            low = span.end


def words_before(match: re.Match[str]) -> str:
    """What stands right before the match."""
    return match.string[max(0, match.start() - LOOK_BACK) : match.start()]


SAYS_OTHER = re.compile(
    r"(?:订单|訂單|单号|單號|运单|快递|流水|序列|编号|編號|发票|工单|条码|(?<![a-z])(?:order|invoice|ticket|case|serial"
    r"|tracking|sku|isbn|ean|build|batch|reference|ref|issue|commit|revision|part|item|article|id))"
    r"(?: ?(?:no|number|nr|num|id|code)|号码?|號碼?|编号|碼|码)?\.?(?: is| was)?[是为為]?[\s:：.=#№-]{0,3}$",
    re.IGNORECASE,
)
"""Words right before a number that say that it is an ordinary one (an order, a serial number)."""
