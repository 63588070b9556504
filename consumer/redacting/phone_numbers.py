"""Finds phone numbers: international with +, and the national forms of China, North America, the United Kingdom,
Germany, France, Spain and the Netherlands. A bare run of digits is one only as a Chinese or British mobile number, or
where the words before it say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consumer.redacting.spans import AFTER, BEFORE, DASH, SAYS_OTHER, SPACE, Span, accepted, words_before

_S = rf"[{SPACE}{DASH}.]"
_PLUS = re.compile(
    rf"(?:(?<![A-Za-z+])\+{_S}?|(?<![0-9A-Za-z+])00)([1-9][0-9]{{0,14}}(?:(?:{_S}|[{SPACE}]?[/(（)）]){{1,2}}[0-9]{{1,14}}){{0,7}})"
    r"(?![0-9A-Za-z])"
)
_NATIONAL = re.compile(
    rf"{BEFORE}(?:"
    # China: mobile, with or without 86; service numbers in their own grouping
    rf"(?:\(?86\)?{_S}?)?1[3-9][0-9]{_S}?[0-9]{{4}}{_S}?[0-9]{{4}}"
    rf"|[48]00{_S}[0-9]{{4}}{_S}[0-9]{{3}}"
    # North America
    rf"|(?:1{_S})?[2-9][0-9]{{2}}{_S}[2-9][0-9]{{2}}{_S}[0-9]{{4}}"
    rf"|(?:1{_S}?)?\([2-9][0-9]{{2}}\)[{SPACE}]?[2-9][0-9]{{2}}{_S}?[0-9]{{4}}"
    # Area code and number: China, Germany, the Netherlands, the United Kingdom
    rf"|(?<![0-9]-)0[1-9][0-9]{{0,3}}(?:[{SPACE}{DASH}/]|[{SPACE}]/[{SPACE}])(?:[0-9]{{6,8}}|[0-9]{{3,4}}{_S}[0-9]{{4}})"
    rf"|[(（]0[1-9][0-9]{{1,3}}[)）]{_S}?(?:[0-9]{{6,8}}|[0-9]{{3,4}}{_S}[0-9]{{3,4}})"
    # The United Kingdom
    rf"|0(?:7[0-9]{{3}}{_S}?[0-9]{{3}}{_S}?[0-9]{{3}}|1[0-9]{{3}}{_S}[0-9]{{3}}{_S}?[0-9]{{3}})"
    # France; Spain in its unmistakable groupings
    rf"|0[1-9](?:{_S}[0-9]{{2}}){{4}}"
    rf"|[6789][0-9]{{2}}(?:[{SPACE}][0-9]{{2}}){{3}}|[89][0-9][{SPACE}][0-9]{{3}}(?:[{SPACE}][0-9]{{2}}){{2}}"
    rf"){AFTER}(?![{DASH}][0-9]{{5}})"
)
_NAMED = re.compile(rf"{BEFORE}[0-9](?:{_S}?[0-9]){{6,14}}{AFTER}")
_NORTH_AMERICAN = re.compile(rf"1{_S}?\(?[0-9]{{3}}[{SPACE}{DASH}.)]{{1,2}}[0-9]{{3}}{_S}")
_GROUP = re.compile(r"[0-9]+")
_NOT_DIGIT = re.compile(r"[^0-9]+")
_DATE = re.compile(r"(?:19|20)[0-9]{2}[-./ ]?[0-9]{2}[-./ ]?[0-9]{2}|[0-9]{1,2}[-./ ][0-9]{1,2}[-./ ](?:19|20)[0-9]{2}")
_SAYS_PHONE = re.compile(
    r"(?:(?<![a-z])(?:tel|telephone|phone|mobile|cell|fax|whatsapp|(?:call|reach|text)(?: me| us)? (?:at|on)|dial)"
    r"|电话|電話|手机|手機|座机|热线|熱線|传真|傳真|致电|致電|拨打|撥打|联系方式)"
    r"(?: ?(?:no|number|nr|num)|号码?|號碼?)?\.?(?: is)?[是为為]?[\s:：.=#]{0,3}$",
    re.IGNORECASE,
)

_CODES_OF_TWO = re.compile(r"2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]")
_CODES_OF_THREE = re.compile(r"2[1-69][0-9]|3[578][0-9]|42[0-9]|5[09][0-9]|6[789][0-9]|8[058][0-9]|9[679][0-9]")
_LENGTHS = {
    "1": (10, 10), "7": (10, 10), "31": (9, 9), "33": (9, 9), "34": (9, 9), "39": (8, 11), "41": (9, 9), "44": (9, 10),
    "45": (8, 8), "47": (8, 8), "48": (9, 9), "49": (7, 11), "55": (10, 11), "61": (9, 9), "65": (8, 8), "81": (9, 10),
    "82": (8, 10), "86": (9, 11), "91": (10, 10), "351": (9, 9), "353": (7, 9), "852": (8, 8), "853": (8, 8),
    "886": (8, 9),
}  # fmt: skip
"""Digits of a national number without its trunk 0, by calling code."""
_ANY_LENGTH = (6, 11)


def find_phones(text: str, low: int, high: int) -> Iterator[Span]:
    """Phone numbers in `text[low:high]`; `key` is the national number without its trunk prefix.

    So `+44 (0)20 7946 0958` and `020 7946 0958` have the same key, the first with its country.
    """
    if text.find("+", low, high) >= 0 or text.find("00", low, high) >= 0:
        yield from accepted(_PLUS, text, low, high, _international)
    yield from filter(None, map(_national, _NATIONAL.finditer(text, low, high)))
    yield from filter(None, map(_named, _NAMED.finditer(text, low, high)))


def _international(match: re.Match[str]) -> Span | None:
    groups = [m.span() for m in _GROUP.finditer(match.string, match.start(1), match.end(1))]
    plus = match.string[match.start()] == "+"
    # The last groups may be another number: the longest that is a number of its country counts.
    for count in range(len(groups), 0, -1):
        digits = "".join(match.string[a:b] for a, b in groups[:count])
        country = _calling_code(digits)
        if country is None:
            return None
        national = digits[len(country) :]
        national = national.removeprefix("0") if country != "39" else national
        shortest, longest = _LENGTHS.get(country, _ANY_LENGTH)
        if not shortest <= len(national) <= longest:
            continue
        # A plain +12345678 is as likely a difference, 00... a serial number with leading zeros.
        if len(digits) < 10 and (count == 1 or not plus):
            return None
        if count == 1 and not plus and country != "86":
            return None
        return Span(match.start(), groups[count - 1][1], "PHONE", national, country)
    return None


def _calling_code(digits: str) -> str | None:
    if digits[0] in "17":
        return digits[0]
    if _CODES_OF_TWO.match(digits):
        return digits[:2]
    return digits[:3] if _CODES_OF_THREE.match(digits) else None


def _national(match: re.Match[str]) -> Span | None:
    if SAYS_OTHER.search(words_before(match)):
        return None
    digits = _NOT_DIGIT.sub("", match.group())
    return _span(match, digits)


def _named(match: re.Match[str]) -> Span | None:
    if not _SAYS_PHONE.search(words_before(match)) or _DATE.match(match.group()):
        return None
    return _span(match, _NOT_DIGIT.sub("", match.group()))


def _span(match: re.Match[str], digits: str) -> Span:
    if len(digits) == 13 and digits.startswith("861"):
        return Span(match.start(), match.end(), "PHONE", digits[2:], "86")
    if len(digits) == 11 and _NORTH_AMERICAN.match(match.group()):
        return Span(match.start(), match.end(), "PHONE", digits[1:], "1")
    return Span(match.start(), match.end(), "PHONE", digits.removeprefix("0"))
