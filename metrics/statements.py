"""Split an answer into statements: the factual claims whose support is judged one by one.

No model: sentences, list items and table rows, less what claims nothing (courtesy, headings, announcements, questions)
and less what refuses. English, Chinese in both scripts, Japanese and every script with sentence marks of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from metrics.blocks import Block, Kind, layout_of
from metrics.boilerplate import attribution_length, is_boilerplate, lead_meaning
from metrics.judge import Statement
from metrics.language import UNSPACED
from metrics.outcome import Reason
from metrics.refusal import clauses_beside, is_referral, is_refusal
from metrics.sentences import sentence_spans

VERSION = "statements/5"
"""Part of every definition of a score over statements: raise it when an answer may be split otherwise."""

MAX_STATEMENTS = 500
"""Statements of one answer that are looked at; `Claims.left_out` says how many more there are."""
SHORT_ITEM = 4
"""Words (twice as many characters in scripts without spaces) up to which a list item needs its lead-in."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What an answer claims. `reason` says why there is no statement, and is None where there is one.

    `refusal`: the answer says that it does not know, and claims nothing besides.
    """

    statements: tuple[Statement, ...]
    refusal: bool
    reason: Reason | None
    left_out: int = 0
    """Statements beyond `MAX_STATEMENTS`."""


def claims_of(answer: str | None) -> Claims:
    """The statements of an answer in order, each once, with their character spans.

    >>> [s.text for s in claims_of("Sure! Returns are free. Returns are free!").statements]
    ['Returns are free.']
    """
    if answer is None or not answer.strip():
        return Claims((), False, Reason.EMPTY_ANSWER)
    layout = layout_of(answer)
    found = list(_statements(answer, layout.blocks))
    refused = any(statement is None for statement in found)
    said = (statement for statement in found if statement is not None)
    # «I don't know. Please contact HR.»: «ask there» belongs to the refusal.
    statements = tuple(_once(s for s in said if not (refused and is_referral(s.text))))
    if not statements and not refused:
        headings = (b for b in layout.blocks if b.kind is Kind.HEADING)
        statements = tuple(_once(s for b in headings for s in _prose(answer, b, "") if s is not None))
    if statements:
        return Claims(statements[:MAX_STATEMENTS], False, None, max(len(statements) - MAX_STATEMENTS, 0))
    only_code = layout.code and not layout.blocks
    return Claims((), refused, Reason.NO_PROSE if only_code else Reason.NO_CLAIMS)


def _statements(answer: str, blocks: tuple[Block, ...]) -> Iterator[Statement | None]:
    """Statements in order; None stands for a refusal."""
    lead = ""
    for i, block in enumerate(blocks):
        if block.kind is Kind.HEADING:
            lead = ""
        elif block.kind is Kind.LEAD:
            followed = i + 1 < len(blocks) and blocks[i + 1].kind is not Kind.HEADING
            *before, last = sentence_spans(answer, block.start, block.end) or [(block.start, block.start)]
            for start, end in before:
                yield from _sentence(answer, start, end, "")
            lead = lead_meaning(cleaned(answer[slice(*last)]))
            if lead and (not followed or any(c.isdigit() for c in lead)):
                # «The warranty lasts two years and covers the following:» claims something; «Opening hours:» does not.
                yield from _sentence(answer, *last, "")
        elif block.kind is Kind.ROW:
            yield Statement(cleaned(block.text), block.start, block.end)
        else:
            if block.kind is Kind.PROSE and i and blocks[i - 1].kind is not Kind.LEAD:
                lead = ""
            yield from _prose(answer, block, lead if block.kind is Kind.ITEM else "")


def _prose(answer: str, block: Block, lead: str) -> Iterator[Statement | None]:
    for start, end in sentence_spans(answer, block.start, block.end):
        yield from _sentence(answer, start, end, lead)


def _sentence(answer: str, start: int, end: int, lead: str) -> Iterator[Statement | None]:
    raw = answer[start:end]
    text = cleaned(raw)
    if is_refusal(text):
        yield None
        for low, high in clauses_beside(raw):
            clause = cleaned(raw[low:high])
            if clause and not is_boilerplate(clause):
                yield Statement(clause, *_trimmed(answer, start + low, start + high))
    elif text and not is_boilerplate(text):
        text = text[attribution_length(text) :]
        if not is_boilerplate(text):
            yield Statement(f"{lead}: {text}" if lead and _is_short(text) else text, start, end)


def _is_short(text: str) -> bool:
    return len(text.split()) <= SHORT_ITEM and len(_WIDE.findall(text)) <= 2 * SHORT_ITEM


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _once(statements: Iterator[Statement]) -> Iterator[Statement]:
    seen: set[str] = set()
    for statement in statements:
        key = _SAME.sub("", unicodedata.normalize("NFKC", statement.text).casefold())
        if key and key not in seen:
            seen.add(key)
            yield statement


_SAME = re.compile(r"[\W_]+")
_WIDE = re.compile(f"[{UNSPACED}]")
_IMAGE = re.compile(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^)\s]{1,500}\)")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,15}(?:\s[^<>\n]{0,200})?/?>")
_CITATION = re.compile(
    r"\s?(?:\[\^?\d{1,3}(?:\s?[,，;–-]\s?\d{1,3}){0,9}\]|【[^】\n]{0,40}\d[^】\n]{0,20}】|[¹²³⁴⁵⁶⁷⁸⁹]+(?!\w))"
)
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|~~|`+")
_BLANKS = re.compile(r"\s+")


def cleaned(text: str) -> str:
    """Text without markup, citation marks and line breaks; the words stay as they are.

    >>> cleaned("**Paris** is the [capital](https://x.example/a) of\\nFrance [1].")
    'Paris is the capital of France.'
    """
    if any(c in text for c in "[]<>*_`~【¹²³⁴⁵⁶⁷⁸⁹\n\r\t"):
        text = _LINK.sub(r"\1", _IMAGE.sub("", text))
        text = _CITATION.sub("", _TAG.sub(" ", text))
        text = _EMPHASIS.sub("", text)
    return _BLANKS.sub(" ", text).strip()
