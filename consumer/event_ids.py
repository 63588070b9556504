"""How the id of an event, or of a trace, stands in records where it cannot stand as it was logged."""

from __future__ import annotations

import hashlib

MAX_ID = 256
"""Characters; a longer id stands as its digest."""
REDACTED = "redacted-"


def long_id(text: str) -> str:
    """In place of an id of more than `MAX_ID` characters."""
    return f"sha256-{_digest(text)}"


def redacted_id(text: str) -> str:
    """In place of an id that holds personal data: as unique, without it."""
    return REDACTED + _digest(text)[:32]


def forms_of(text: str) -> tuple[str, ...]:
    """All names under which whoever knows the id as it was logged may find it in a record.

    >>> len(forms_of("evt-1")), len(forms_of("x" * 300))
    (2, 3)
    """
    text = text.strip()
    return (text, redacted_id(text), *([long_id(text)] if len(text) > MAX_ID else []))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
