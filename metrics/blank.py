"""When a text holds nothing to read."""

from __future__ import annotations

import unicodedata


def is_blank(text: str | None) -> bool:
    """Empty, or nothing but white space, control and format characters (NUL, zero-width space, byte order mark ...).

    >>> is_blank(" \\u200b\\u0000"), is_blank(None), is_blank("0")
    (True, True, False)
    """
    return not text or all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in text)
