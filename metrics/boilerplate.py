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
_LEAD_IN = pattern("lead", "english", "chinese")
_TOPIC = pattern("lead", "topic")
_CLAUSE_END = re.compile(r"\s*(?:[,，、!！;；]|——|\s[—–-]\s)\s*")
CLAUSES = 6
"""Clauses of a lead-in that are looked at from either end."""
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


def lead_meaning(sentence: str) -> str:
    """What a lead-in says of each item after it: the sentence less greeting, announcement and pointer at the evidence.

    Empty where nothing is left.

    >>> lead_meaning("Hello, part-time staff get:"), lead_meaning("Hello, based on the provided documents:")
    ('part-time staff get', '')
    """
    rest = sentence.rstrip(":： ")
    for _ in range(CLAUSES):
        if is_boilerplate(f"{rest}:") or _only_leads_in(rest):
            return ""
        comma = _CLAUSE_END.search(rest, 0, LONGEST)
        head = rest[: comma.start()] if comma else ""
        if comma and (is_boilerplate(head) or _only_leads_in(head)):
            rest = rest[comma.end() :]
        elif length := attribution_length(rest):
            rest = rest[length:]
        else:
            break
    for _ in range(CLAUSES):
        commas = list(_CLAUSE_END.finditer(rest[-LONGEST:]))
        tail = rest[-LONGEST:][commas[-1].end() :] if commas else ""
        if not tail or not (is_boilerplate(f"{tail}:") or _only_leads_in(tail)):
            break
        rest = rest[: len(rest) - len(rest[-LONGEST:]) + commas[-1].start()]
    named = _TOPIC.search(simplified(rest)) if len(rest) <= LONGEST else None
    return rest[: named.start()] if named else rest


def _only_leads_in(clause: str) -> bool:
    return bool(_LEAD_IN.match(simplified(clause[:LONGEST])))
