"""Check digits of card, bank-account and identity numbers: what tells a real one from a number that looks like it."""

from __future__ import annotations

import re
from datetime import date

_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SD": 18,
    "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22,
    "VG": 24, "XK": 20,
}  # fmt: skip
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15})"  # Visa
    r"|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|62[0-9]{14,17}|8[12][0-9]{14}"  # UnionPay, RuPay
    r"|9558[0-9]{15}"  # Chinese bank cards older than UnionPay
    r"|(?:60[0-9]|65[0-9]|64[4-9])[0-9]{13}"  # Discover, RuPay
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"  # JCB
    r"|3(?:0[0-5][0-9]|[689][0-9]{2})[0-9]{10}(?:[0-9]{2})?"  # Diners Club
    r"|(?:50|5[6-8])[0-9]{11,14}|6[37][0-9]{14,17}"  # Maestro, Verve
    r"|220[0-4][0-9]{12}"  # Mir
    r"|9792[0-9]{12}"  # Troy
)
"""Cards that are issued. Nearly all numbers of 17 to 19 digits in the field are generated ids, one in ten of which
passes the Luhn check, so that length counts only for the issuers that really use it."""
_CN_PROVINCES = re.compile(r"1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]|91")
_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_TW_LETTERS = {letter: n for n, letter in enumerate("ABCDEFGHJKLMNPQRSTUVXYWZIO", start=10)}
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def luhn(digits: str) -> bool:
    """The check of ISO/IEC 7812-1, annex B."""
    return (sum(map(int, digits[-1::-2])) + sum(map(_DOUBLED.__getitem__, map(int, digits[-2::-2])))) % 10 == 0


def is_card(digits: str) -> bool:
    """A payment card: a known issuer's prefix and length, and the Luhn check; not one digit repeated."""
    return _ISSUERS.fullmatch(digits) is not None and len(set(digits)) > 1 and luhn(digits)


def iban_length(country: str) -> int | None:
    """Characters of an IBAN of the country, None where it has none (the SWIFT registry)."""
    return _IBAN_LENGTHS.get(country)


def is_iban(text: str) -> bool:
    """ISO 13616: length of the country and remainder 1 modulo 97; without separators, capital letters."""
    if iban_length(text[:2]) != len(text):
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def is_chinese_resident_id(text: str) -> bool:
    """GB 11643-1999: 17 digits and a check character (ISO 7064, MOD 11-2), a province code and a date of birth."""
    if not _CN_PROVINCES.match(text):
        return False
    try:
        born = date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    if not 1850 <= born.year <= 2200:
        return False
    remainder = sum(int(d) * w for d, w in zip(text[:17], _CN_WEIGHTS, strict=True)) % 11
    return "10X98765432"[remainder] == text[17].upper()


def is_hong_kong_id(letters: str, digits: str, check: str) -> bool:
    """One or two letters, six digits, a check character 0-9 or A; weights 9 to 2, modulo 11."""
    values = [36] if len(letters) == 1 else []
    values += [ord(c) - ord("A") + 10 for c in letters] + [int(d) for d in digits]
    total = sum(v * w for v, w in zip(values, range(9, 1, -1), strict=True))
    return (total + (10 if check == "A" else int(check))) % 11 == 0


def is_taiwan_id(text: str) -> bool:
    """A letter, a digit for the sex (1, 2; residents 8, 9) and eight digits, the last one a check digit modulo 10."""
    letter = _TW_LETTERS[text[0]]
    digits = [letter // 10, letter % 10, *(int(d) for d in text[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def is_us_ssn(area: str, group: str, serial: str) -> bool:
    """Never issued: area 000, 666 and 9xx, group 00, serial 0000 (Social Security Administration)."""
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def is_uk_nino(prefix: str) -> bool:
    """The prefixes that HM Revenue & Customs never allocates are excluded; there is no check digit."""
    return prefix[0] not in "DFIQUV" and prefix[1] not in "DFIOQUV" and prefix not in {
        "BG", "GB", "KN", "NK", "NT", "TN", "ZZ",
    }  # fmt: skip


def is_spanish_id(text: str) -> bool:
    """DNI (eight digits and a letter) or NIE (X, Y or Z, seven digits and a letter): the letter modulo 23."""
    number = text[:-1].translate({ord("X"): "0", ord("Y"): "1", ord("Z"): "2"})
    return _DNI_LETTERS[int(number) % 23] == text[-1]
