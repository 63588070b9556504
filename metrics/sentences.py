"""Sentence boundaries in text of any script, as character spans. Linear time, whatever the text."""

from __future__ import annotations

import re
from bisect import bisect_right

from metrics.language import UNSPACED

MAX_LENGTH = 1000
"""Characters: a longer run without any sentence end is cut at a comma or a space."""
QUOTE_REACH = 300
"""Characters after which an opened quote or bracket is taken for a slip of the pen."""

Span = tuple[int, int]

_END = re.compile(r"(?:[.!?…。！？｡؟۔।॥]+|；)[\"'”’」』）)\]》】*_]*")
_LITERAL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'，。；、）)】]+|`[^`\n]{1,200}`|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}"
)
_OPENERS = re.compile(r"[(（\[【「『“《\"]")
_CLOSERS = {"(": ")", "（": "）", "[": "]", "【": "】", "「": "」", "『": "』", "“": "”", "《": "》", '"': '"'}
_WORD_BEFORE = re.compile(r"[^\s(（\[\"“'‘]{1,20}$")
_NEXT_WORD = re.compile(r"\s*[\"'“‘(\[*_]{0,3}(\w{0,12})")
_CONTENT = re.compile(r"[^\W_]")
_WIDE = re.compile(f"[{UNSPACED}]")

_TITLES = re.compile(
    r"(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|e\.g|i\.e|cf|approx|dept|est|gen|col|lt|sgt|capt|rev|hon|gov|sen|rep|fr|mt|ft|al|"
    r"incl|excl|resp|esp|ca|viz|ext|tel|eq|refs?|eds?|trans|min|max|avg|misc)"
)
_BEFORE_NUMBER = re.compile(r"(?:nos?|figs?|pp?|sec|art|vol|ch|para?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)")
_MAYBE_LAST = re.compile(r"(?:[A-Za-z]|(?:[A-Za-z]\.){1,4}[A-Za-z]|inc|ltd|co|corp|etc|bros|jr|sr|ave|blvd|rd)$", re.I)
_STARTER = re.compile(
    r"(?:The|An?|Its?|This|That|These|Those|He|She|They|We|You|I|In|On|At|For|From|With|By|As|If|When|While|After|Before|"
    r"However|But|And|So|Also|There|Here|Then|His|Her|Their|Our|Your|All|Some|Most|Many|Each|No|Not|Yes)"
)


def sentence_spans(text: str, start: int, end: int) -> list[Span]:
    """Spans of the sentences of `text[start:end]`, in order, without blanks around; each has a letter or a digit."""
    spans: list[Span] = []
    begin = start
    inside = _protected(text, start, end)
    opened = [low for low, _ in inside]
    for match in _END.finditer(text, start, end):
        at = match.start()
        holder = bisect_right(opened, at) - 1
        if holder >= 0 and at < inside[holder][1]:
            continue
        if _is_boundary(text, begin, match, end):
            spans += _pieces(text, begin, match.end())
            begin = match.end()
    return spans + _pieces(text, begin, end)


def _protected(text: str, start: int, end: int) -> list[Span]:
    """Disjoint spans in which nothing ends a sentence: addresses, inline code, short quotes and brackets."""
    spans = [(m.start(), m.start() + len(m[0].rstrip(".,;:!?"))) for m in _LITERAL.finditer(text, start, end)]
    closed_until = start
    for match in _OPENERS.finditer(text, start, end):
        at = match.start()
        if at < closed_until:
            continue
        close = text.find(_CLOSERS[match[0]], at + 1, min(at + QUOTE_REACH, end))
        if close < 0:
            continue
        closed_until = close + 1
        inner = close
        while inner > at and text[inner - 1] in ".!?":  # «She said "Go." Then ...»: this full stop is a real one
            inner -= 1
        spans.append((at, inner))
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _is_boundary(text: str, begin: int, match: re.Match[str], end: int) -> bool:
    mark, after = match[0], match.end()
    if after >= end:
        return True
    following = text[after]
    if mark[0] == "；":
        return after - begin >= 4
    if mark[0] not in ".!?…":
        return mark[-1] not in "」』”）" or following.isspace()
    if not following.isspace():
        return mark[0] in "!?" and bool(_WIDE.match(following))
    next_word = _next_word(text, after)
    if mark.startswith(("..", "…")):
        return not next_word[:1].islower()
    return mark[0] != "." or _full_stop(text, begin, match.start(), next_word)


def _full_stop(text: str, begin: int, at: int, next_word: str) -> bool:
    found = _WORD_BEFORE.search(text, max(begin, at - 20), at)
    if found is None:
        return True
    word = found[0].lower()
    if len(word) == 1 and found[0].isupper():
        return bool(_STARTER.fullmatch(next_word))  # «J. P. Morgan», «vitamin C. It ...»
    if word.isdigit() and not _CONTENT.search(text, begin, found.start()):
        return False  # «2. Rub the roast»
    if _TITLES.fullmatch(word):
        return False
    if _BEFORE_NUMBER.fullmatch(word):
        return not next_word[:1].isdigit()
    if _MAYBE_LAST.fullmatch(word):
        return bool(_STARTER.fullmatch(next_word))
    return True


def _next_word(text: str, at: int) -> str:
    found = _NEXT_WORD.match(text, at)
    return found[1] if found else ""


def _pieces(text: str, begin: int, end: int) -> list[Span]:
    """The span without blanks around, cut where it is longer than any sentence; nothing where it has no content."""
    spans = []
    while begin < end:
        stop = end
        if end - begin > MAX_LENGTH:
            window = text[begin : begin + MAX_LENGTH]
            cut = max(window.rfind(mark) for mark in ("，", ",", ";", "、", " ", "\n"))
            stop = begin + (cut + 1 if cut > MAX_LENGTH // 2 else MAX_LENGTH)
        low, high = begin, stop
        while low < high and text[low].isspace():
            low += 1
        while high > low and text[high - 1].isspace():
            high -= 1
        if _CONTENT.search(text, low, high):
            spans.append((low, high))
        begin = stop
    return spans
