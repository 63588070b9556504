"""Text of an event where something might obey it: what it would obey is made visible instead (design: invariant 6)."""

from __future__ import annotations

import re
import unicodedata

_KEPT = frozenset("\u200c\u200d")
"""Joiners that scripts and emoji need; they move no other text."""
_DROPPED = frozenset("\u00ad\ufeff\u200b\u2060")
_UNSAFE_IN_JSON = re.compile(
    "[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def inert(text: str) -> str:
    """`text` on one line, in which control characters, escape sequences and marks that turn the reading direction
    around stand as visible codes.

    >>> inert("red \\x1b[31m and\\nnew")
    'red \\\\x1b[31m and new'
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character.isprintable() or character in _KEPT:
        return character
    if character in _DROPPED:
        return ""
    if character in "\t\n\r\v\f" or unicodedata.category(character) in ("Zs", "Zl", "Zp"):
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def inert_lines(text: str) -> list[str]:
    """The lines of `text`, each inert; at most one blank line in a row, none at the ends."""
    lines = [inert(line).rstrip() for line in re.split("\r\n|[\n\r\u2028\u2029]", text)]
    kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
    while kept and not kept[-1]:
        kept.pop()
    return kept[1:] if kept and not kept[0] else kept


def inert_json(json_text: str) -> str:
    """JSON with the same meaning, in which no character is left that a terminal might obey."""
    return _UNSAFE_IN_JSON.sub(lambda match: _escaped(match[0]), json_text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
