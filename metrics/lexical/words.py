"""Folding, stemming and the word lists (words.toml, units.toml) of the lexical judge."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any

from metrics.language import simplified

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_LOOKALIKES = {0x3000: " ", 0x2019: "'", 0x2011: "-", 0x2013: "-", 0x2212: "-"}
_ACCENTED = {code: unicodedata.normalize("NFD", chr(code))[0] for code in range(0xC0, 0x250)}
_WIDE = str.maketrans(_ACCENTED | _FULL_WIDTH | _LOOKALIKES)


def fold(text: str) -> str:
    """Lower case, no accents, simplified Chinese, half-width forms; one character for one, so that spans stay valid."""
    if not text.isascii():
        text = simplified(text).translate(_WIDE)
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) != 1 else c.lower() for c in text)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("metrics.lexical").joinpath(name).read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def word_lists() -> dict[str, Any]:
    return _read("words.toml")


@lru_cache(maxsize=1)
def unit_lists() -> dict[str, Any]:
    return _read("units.toml")


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_IRREGULAR = {form: base for base, forms in word_lists()["irregular"].items() for form in forms.split()}
_VOWEL = re.compile(r"[aeiouy]")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A light English stem of a folded word: plural, -ing, -ed, -ly and a final -e, -y come off; it need not be a word.

    >>> [stem(w) for w in ("changes", "changed", "changing", "stopped", "cities", "city", "went", "quickly")]
    ['chang', 'chang', 'chang', 'stop', 'citi', 'citi', 'go', 'quick']
    """
    word = word.removesuffix("'s").removesuffix("'").removesuffix(".")
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-2]
    if word.endswith("sses") or (word.endswith("es") and word[-3] in "xzo"):
        word = word[:-2]
    elif word.endswith("s") and word[-2] not in "su":
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and _VOWEL.search(base):
            if ending != "ly" and base[-1] == base[-2] and base[-1] not in "lsz":
                base = base[:-1]
            word = base
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word
