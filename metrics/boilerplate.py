"""What an answer says without claiming anything: greetings, offers to help, announcements, pointers to sources.

The phrases are in phrases.toml.
"""

from __future__ import annotations

import re

from metrics.language import simplified
from metrics.phrases import pattern

LONGEST = 400
"""Characters looked at."""

_ANNOUNCEMENT = pattern("announcement", "english", "chinese")
_SOURCE = pattern("announcement", "source")
_OFFER = pattern("offer", "english", "chinese", "japanese")
_COURTESY = pattern("courtesy", "english", "chinese", "japanese")
_QUESTION = pattern("question", "mark")
_CLAIMING_QUESTION = pattern("question", "claiming")
_TAGGED_QUESTION = pattern("question", "tagged")
_ATTRIBUTION = pattern("attribution", "english", "chinese")
_LINK = re.compile(r"(?:https?://|www\.)\S+")
_CONTENT = re.compile(r"[^\W_]")
_PUNCTUATION = re.compile(r"[\W_]+")


def is_boilerplate(sentence: str) -> bool:
    """True where a sentence of an answer claims nothing: nothing in it could be right or wrong.

    >>> is_boilerplate("Based on the given passages, here are the steps:")
    True
    >>> is_boilerplate("Please contact support at 555-0199.")
    False
    """
    head = simplified(sentence[:LONGEST]).strip(" \t*_#>")
    if not _CONTENT.search(head) or _SOURCE.match(head) or not _CONTENT.search(_LINK.sub("", head)):
        return True
    if _ANNOUNCEMENT.match(head) or _only_courtesy(head):
        return True
    if _OFFER.search(head) and "@" not in head and not any(c.isdigit() for c in head):
        return True
    tail = simplified(sentence[-60:])
    return bool(
        _QUESTION.search(tail) and not _CLAIMING_QUESTION.search(head) and not _TAGGED_QUESTION.search(tail)
    )  # fmt: skip


def _only_courtesy(head: str) -> bool:
    at = 0
    while at < len(head):
        if gap := _PUNCTUATION.match(head, at):
            at = gap.end()
            continue
        found = _COURTESY.match(head, at)
        if not found or _inside_a_word(head, found.end()):
            return False
        at = found.end()
    return True


def _inside_a_word(text: str, at: int) -> bool:
    """«surely» is not «sure»."""
    return (
        at < len(text)
        and text[at - 1].isascii()
        and text[at].isascii()
        and text[at - 1].isalnum()
        and text[at].isalnum()
    )


def attribution_length(sentence: str) -> int:
    """Characters of a leading «according to the passages, ...»: a pointer at the evidence and no part of the claim.

    0 where nothing of the sentence would be left.
    """
    found = _ATTRIBUTION.match(simplified(sentence[:LONGEST]))
    return found.end() if found and _CONTENT.search(sentence, found.end()) else 0
