"""Finds e-mail addresses, phone, card and identity numbers in a text. Pure: a text in, spans out.

Everything is linear in the length of the text: no pattern has a repetition without a bound that another one can share.
Numbers are looked for only around runs of six digits or more, so that ordinary prose costs one scan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from consumer.redacting.check_digits import (
    iban_length,
    is_card,
    is_chinese_resident_id,
    is_hong_kong_id,
    is_iban,
    is_spanish_id,
    is_taiwan_id,
    is_uk_nino,
    is_us_ssn,
)
from consumer.redacting.phone_numbers import find_phones
from consumer.redacting.spans import AFTER, BEFORE, DASH, SAYS_OTHER, SPACE, Span, accepted, words_before

# Full-width forms are one character each, so positions in the folded text are positions in the text.
_FOLD_NEEDED = re.compile(r"[０-９Ａ-Ｚａ-ｚ＠＋٠-٩۰-۹]")
_FOLD = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_FOLD |= {zero + n: 0x30 + n for zero in (0x0660, 0x06F0) for n in range(10)}

_ZONE = re.compile(rf"[0-9][0-9{SPACE}{DASH}.()（）/+]{{4,}}[0-9]")
_LEAST_DIGITS = 6
_ORDINARY = re.compile(
    # a date with hours beside it, a decimal number, two years
    r"(?:[0-9]{1,2}\s)?(?:19|20)[0-9]{2}([-/.])[0-9]{1,2}\1[0-9]{1,2}(?:\s[0-9]{1,2})?"
    rf"|[0-9]+\.[0-9]+|(?:19|20)[0-9]{{2}}[{DASH}/](?:19|20)[0-9]{{2}}"
)
_NOT_DIGIT = re.compile(r"[^0-9]+")
_CAPITAL = re.compile(r"[A-Z]")
_BEFORE_ZONE, _AFTER_ZONE = 12, 4

_LOCAL = r"A-Za-z0-9_+\u00c0-\u024f"
_EMAIL = re.compile(
    rf"(?<![{_LOCAL}])[{_LOCAL}][{_LOCAL}.%'\-]{{0,63}}@"
    r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,7}\.[A-Za-z]{2,24}(?![A-Za-z0-9])"
)

_CARD = re.compile(
    rf"{BEFORE}(?=[2-689])(?:[0-9]{{13,19}}"
    rf"|[0-9]{{4}}(?:[{SPACE}{DASH}][0-9]{{4}}){{2,3}}(?:[{SPACE}{DASH}][0-9]{{1,4}})?"
    rf"|3[0-9]{{3}}[{SPACE}{DASH}][0-9]{{6}}[{SPACE}{DASH}][0-9]{{4,5}}"
    rf"|[0-9]{{6}}[{SPACE}{DASH}][0-9]{{10,13}})(?![0-9A-Za-z])(?!\.[0-9])"
)
_GROUP = re.compile(r"[0-9]+")

_CHINESE_ID = re.compile(
    rf"{BEFORE}([1-9][0-9]{{5}})[{SPACE}{DASH}]?([0-9]{{8}})[{SPACE}{DASH}]?([0-9]{{3}}[0-9Xx]){AFTER}"
)
_HONG_KONG_ID = re.compile(r"(?<![0-9A-Za-z])([A-Z]{1,2})([0-9]{6})[ ]?[(（]([0-9A])[)）]")
_HONG_KONG_BARE = re.compile(r"(?<![0-9A-Za-z])([A-Z]{1,2})([0-9]{6})([0-9A])(?![0-9A-Za-z])")
_TAIWAN_ID = re.compile(r"(?<![0-9A-Za-z])[A-Z][1289][0-9]{8}(?![0-9A-Za-z])")
_SSN = re.compile(rf"{BEFORE}([0-9]{{3}})([{DASH}{SPACE}]?)([0-9]{{2}})\2([0-9]{{4}}){AFTER}(?![{DASH}][0-9])")
_NINO = re.compile(r"(?<![0-9A-Za-z])([A-Z]{2})[ ]?([0-9]{2})[ ]?([0-9]{2})[ ]?([0-9]{2})[ ]?([A-D])(?![0-9A-Za-z])")
_SPANISH_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:([0-9]{8})|([0-9]{2})\.([0-9]{3})\.([0-9]{3})|([XYZ])-?([0-9]{7}))[ -]?([A-Z])(?![0-9A-Za-z])"
)
_PASSPORT = re.compile(r"(?<![0-9A-Za-z])(?:[A-Z]{1,2}[0-9]{7,8}|[0-9]{9})(?![0-9A-Za-z])")
_IBAN_START = re.compile(r"[A-Z][A-Z][0-9][0-9]")

_SAYS_SSN = re.compile(r"(?:ssn|social security)[^0-9\n]{0,16}$", re.IGNORECASE)
_SAYS_PASSPORT = re.compile(r"(?:passport|护照|護照)[^0-9\n]{0,14}$", re.IGNORECASE)
_SAYS_ID = re.compile(r"(?:hkid|identity|身份[证証證]|\bid\b)[^0-9\n]{0,14}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of text that holds six digits or more, with what may belong to a number around them."""

    low: int
    high: int
    digits: int
    capitals: bool


def find_personal_data(text: str, kinds: frozenset[str]) -> list[Span]:
    """The values of the given kinds, in order, without overlap. Where two overlap, the one with a check digit wins."""
    if not text.isascii() and _FOLD_NEEDED.search(text):
        text = text.translate(_FOLD)
    found: list[Span] = []
    if "@" in text and "EMAIL" in kinds:
        found += (Span(m.start(), m.end(), "EMAIL", m.group().casefold()) for m in _EMAIL.finditer(text))
    windows = _windows(text)
    if not windows:
        return found
    taken = bytearray(len(text))
    for span in found:
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
    for kind, find, least_digits, has_capitals in _FINDERS:
        if kind not in kinds:
            continue
        for window in windows:
            if window.digits < least_digits or (has_capitals and not window.capitals):
                continue
            for span in find(text, window.low, window.high):
                if not any(taken[span.start : span.end]):
                    taken[span.start : span.end] = b"\1" * (span.end - span.start)
                    found.append(span)
    return sorted(found, key=lambda span: span.start)


def _windows(text: str) -> list[_Window]:
    windows: list[_Window] = []
    for zone in _ZONE.finditer(text):
        start, end = zone.span()
        digits = len(_NOT_DIGIT.sub("", zone.group()))
        if digits < _LEAST_DIGITS or _ORDINARY.fullmatch(text, start, end):
            continue
        low, high = max(0, start - _BEFORE_ZONE), min(len(text), end + _AFTER_ZONE)
        capitals = _CAPITAL.search(text, low, high) is not None
        if windows and low <= windows[-1].high:
            last = windows.pop()
            low, digits, capitals = last.low, last.digits + digits, last.capitals or capitals
        if capitals or digits > _LEAST_DIGITS:
            windows.append(_Window(low, high, digits, capitals))
    return windows


def _id(match: re.Match[str], key: str) -> Span:
    return Span(match.start(), match.end(), "ID", key)


def _ibans(text: str, low: int, high: int) -> Iterator[Span]:
    def accept(match: re.Match[str]) -> Span | None:
        start = match.start()
        length = iban_length(text[start : start + 2])
        if length is None or (start and text[start - 1].isalnum() and text[start - 1].isascii()):
            return None
        end, taken = start, 0
        while taken < length and end < len(text) and end - start < 2 * length:
            taken += text[end] not in " -"
            end += 1
        value = text[start:end].replace(" ", "").replace("-", "")
        whole = value.isascii() and value.isalnum() and value.upper() == value
        if not whole or text[end : end + 1].isalnum() or not is_iban(value):
            return None
        return Span(start, end, "ID", value)

    return accepted(_IBAN_START, text, low, high, accept)


def _chinese_ids(text: str, low: int, high: int) -> Iterator[Span]:
    def accept(match: re.Match[str]) -> Span | None:
        value = "".join(match.groups()).upper()
        return _id(match, value) if is_chinese_resident_id(value) else None

    return accepted(_CHINESE_ID, text, low, high, accept)


def _cards(text: str, low: int, high: int) -> Iterator[Span]:
    def accept(match: re.Match[str]) -> Span | None:
        groups = [m.span() for m in _GROUP.finditer(text, match.start(), match.end())]
        # The last groups may belong to what follows (an expiry year, a code): the longest valid number counts.
        for count in range(len(groups), max(0, len(groups) - 2), -1):
            digits = "".join(text[a:b] for a, b in groups[:count])
            if 13 <= len(digits) <= 19 and is_card(digits):
                bare = count == 1
                if bare and SAYS_OTHER.search(words_before(match)):
                    return None
                return Span(match.start(), groups[count - 1][1], "CARD", digits)
        return None

    return accepted(_CARD, text, low, high, accept)


def _with_letters(text: str, low: int, high: int) -> Iterator[Span]:
    for pattern, accept in _LETTERED:
        yield from accepted(pattern, text, low, high, accept)


def _without_letters(text: str, low: int, high: int) -> Iterator[Span]:
    yield from accepted(_SSN, text, low, high, _ssn)
    yield from accepted(_PASSPORT, text, low, high, _passport)


def _hong_kong(match: re.Match[str]) -> Span | None:
    letters, digits, check = match.groups()
    return _id(match, letters + digits + check) if is_hong_kong_id(letters, digits, check) else None


def _hong_kong_bare(match: re.Match[str]) -> Span | None:
    # One code in eleven passes the check, so without its brackets it counts only where the text says what it is.
    return _hong_kong(match) if _SAYS_ID.search(words_before(match)) else None


def _taiwan(match: re.Match[str]) -> Span | None:
    return _id(match, match.group()) if is_taiwan_id(match.group()) else None


def _ssn(match: re.Match[str]) -> Span | None:
    area, separator, group, serial = match.groups()
    if not is_us_ssn(area, group, serial):
        return None
    if (not separator or separator.isspace()) and not _SAYS_SSN.search(words_before(match)):
        return None
    return _id(match, area + group + serial)


def _nino(match: re.Match[str]) -> Span | None:
    return _id(match, "".join(match.groups())) if is_uk_nino(match.group(1)) else None


def _spanish(match: re.Match[str]) -> Span | None:
    value = "".join(part for part in match.groups() if part)
    return _id(match, value) if is_spanish_id(value) else None


def _passport(match: re.Match[str]) -> Span | None:
    return _id(match, match.group()) if _SAYS_PASSPORT.search(words_before(match)) else None


_LETTERED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Span | None]], ...] = (
    (_HONG_KONG_ID, _hong_kong),
    (_HONG_KONG_BARE, _hong_kong_bare),
    (_TAIWAN_ID, _taiwan),
    (_NINO, _nino),
    (_SPANISH_ID, _spanish),
    (_PASSPORT, _passport),
)
_FINDERS: tuple[tuple[str, Callable[[str, int, int], Iterator[Span]], int, bool], ...] = (
    # kind, finder, fewest digits of a value, whether it has capital letters
    ("ID", _ibans, 6, True),
    ("ID", _chinese_ids, 17, False),
    ("CARD", _cards, 13, False),
    ("ID", _with_letters, 6, True),
    ("ID", _without_letters, 9, False),
    ("PHONE", find_phones, 7, False),
)
"""Strongest check first: the first to claim a stretch of text has it."""
