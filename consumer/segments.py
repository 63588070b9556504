"""Which segment an event belongs to: allow-listed label values, else `other`, the same on every worker.

Series labels come from here only, so nothing that an event says can add a series or break an exposition.
"""

from __future__ import annotations

import re

from consumer import settings
from metrics.event import Event

OTHER = "other"
MAX_LABEL_CHARACTERS = 64
_DETECT_CHARACTERS = 2000
"""The script of a text is plain from its beginning."""
_ENOUGH = 3
"""Words or characters from which on the question alone decides."""

_LANGUAGE_NAMES = {
    "zh": ("zh", "zho", "chi", "cmn", "yue", "wuu", "cn", "chinese", "mandarin", "cantonese", "中文", "汉语", "漢語",
           "简体中文", "簡體中文", "繁體中文", "繁体中文", "普通话"),
    "en": ("en", "eng", "english", "英文", "英语", "英語"),
    "ja": ("ja", "jpn", "jp", "japanese", "日本語", "日语", "日文"),
    "ko": ("ko", "kor", "kr", "korean", "한국어", "韩语", "韓語"),
    "es": ("es", "spa", "spanish", "español"),
    "fr": ("fr", "fra", "fre", "french", "français"),
    "de": ("de", "deu", "ger", "german", "deutsch"),
    "pt": ("pt", "por", "portuguese", "português"),
    "it": ("it", "ita", "italian", "italiano"),
    "ru": ("ru", "rus", "russian", "русский"),
    "ar": ("ar", "ara", "arabic", "العربية"),
}  # fmt: skip
_LANGUAGES = {name: code for code, names in _LANGUAGE_NAMES.items() for name in names}
_UNKNOWN = {"und", "mul", "zxx", "mis", "unknown", "auto", "none", "null", "other", "any"}

_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+(?:['’][A-Za-z]+)?")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_OTHER_SCRIPTS = {
    "ru": re.compile(r"[\u0400-\u052f]+"),
    "ar": re.compile(r"[\u0600-\u06ff\u0750-\u077f]+"),
    "he": re.compile(r"[\u0590-\u05ff]+"),
    "hi": re.compile(r"[\u0900-\u097f]+"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "el": re.compile(r"[\u0370-\u03ff]+"),
}


def clean_label(value: str) -> str:
    """A label value that no exposition, log line or JSON can trip over: no lone surrogates, no control or formatting
    characters, at most 64 characters, stripped."""
    if not value.isprintable():
        value = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in value)
        value = re.sub(" {2,}", " ", value)
    return value.strip()[:MAX_LABEL_CHARACTERS].rstrip()


def normal_language(label: str) -> str | None:
    """`zh-CN`, `ZH_hans`, `Chinese` -> `zh`; an unknown but well-formed tag gives its first part; else None."""
    whole = label.strip().casefold()
    if whole in _LANGUAGES:
        return _LANGUAGES[whole]
    first = re.split(r"[-_ .(,;@]", whole, maxsplit=1)[0]
    if first in _LANGUAGES:
        return _LANGUAGES[first]
    return first if re.fullmatch(r"[a-z]{2,3}", first) and first not in _UNKNOWN else None


def script_language(question: str, answer: str) -> str | None:
    """The language that the script stands for, None where there are no letters.

    Kana mean `ja`, Hangul `ko`, Han without kana `zh`; everything in Latin script is `en`, a simplification: label the
    language where others are in use. The question decides where it has three words or more (a Han character counts as
    one), else question and answer together, so that "VPN?" with a Chinese answer is `zh`.
    """
    units = _units(question)
    if sum(units.values()) < _ENOUGH:
        both = _units(answer)
        units = {code: units.get(code, 0) + both.get(code, 0) for code in units | both}
    # Kana beside Han are Japanese; a stray one (の in a Chinese brand name) is not.
    if units.get("ja", 0) * 10 >= units.get("zh", 0):
        units["ja"] = units.get("ja", 0) and units.get("ja", 0) + units.pop("zh", 0)
    best = max(units.items(), key=lambda item: (item[1], item[0] != "en"), default=("", 0))
    return best[0] if best[1] else None


def _units(text: str) -> dict[str, int]:
    text = text[:_DETECT_CHARACTERS]
    units = {"en": len(_WORD.findall(text))}
    if text.isascii():
        return units
    units |= {"zh": len(_HAN.findall(text)), "ja": len(_KANA.findall(text)), "ko": len(_HANGUL.findall(text))}
    return units | {code: len(script.findall(text)) for code, script in _OTHER_SCRIPTS.items()}


class Segmenter:
    """Reads the segment and the contrast labels off an event."""

    def __init__(self, settings: settings.Segments) -> None:
        self._allow = {name: frozenset(values) for name, values in settings.allow.items()}
        self._contrast = settings.contrast

    def segment(self, event: Event) -> dict[str, str]:
        """One value per configured dimension, each from its allow-list or `other`."""
        return {name: self._value(name, allowed, event) for name, allowed in self._allow.items()}

    def contrast(self, event: Event) -> dict[str, str]:
        """The values of the contrast dimensions that the event has, sanitised and capped in length."""
        cleaned = ((name, clean_label(event.labels[name])) for name in self._contrast if name in event.labels)
        return {name: value for name, value in cleaned if value}

    def _value(self, name: str, allowed: frozenset[str], event: Event) -> str:
        if not allowed:
            return OTHER
        label = event.labels.get(name, "").strip()
        if label in allowed:
            return label
        if name == "lang":
            language = normal_language(label) or script_language(event.question or "", event.answer or "")
            return language if language in allowed and language is not None else OTHER
        return OTHER
