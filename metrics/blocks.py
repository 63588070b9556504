"""An answer as blocks: paragraphs, list items, table rows, lead-ins and headings, with code and rules left out.

A small line parser and no Markdown library: answers are half Markdown at best, and a block must know its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from metrics.language import UNSPACED

WRAP = 60
"""Characters (half of that in scripts without spaces) from which a line without a full stop may be a wrapped one."""


class Kind(Enum):
    PROSE = auto()
    ITEM = auto()
    ROW = auto()
    LEAD = auto()
    """A line that ends in a colon: it announces what follows."""
    HEADING = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """`answer[start:end]`. `text` replaces it for a table row (cells with their headers)."""

    kind: Kind
    start: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    blocks: tuple[Block, ...]
    code: bool
    """There was code, which is left out of the blocks."""


CODE_ENDS = 500
"""Characters at the beginning and at the end of a line that tell whether it is code."""
_FENCE = re.compile(r"\s{0,8}(`{3,}|~{3,})")
_THINKING = re.compile(r"<(think|thinking|reasoning|reflection)>")
_RULE = re.compile(r"\s*(?:[-*_=~—]\s*){3,}$")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S")
_BOLD_LINE = re.compile(r"\s*(?:\*\*|__)[^*_]{1,120}(?:\*\*|__)\s*[:：]?\s*$")
_MARKER = re.compile(
    r"\s*(?:>\s?){0,4}\s*(?:[-*+•·‣▪◦●○■□–—]\s+(?:\[[ xX]\]\s+)?|[•·●]|"
    r"\(?\d{1,3}[.)、）](?!\d)\s*|[（(]\d{1,3}[)）]\s*|"
    r"[①②③④⑤⑥⑦⑧⑨⑩⑪⑫]\s*|[（(]?[一二三四五六七八九十]{1,3}[、.)）]\s*|第[一二三四五六七八九十]{1,3}[，,、：:]\s*|\(?[a-hA-H][.)]\s+)"
)
_QUOTE = re.compile(r"\s*(?:(?:>\s?){1,4}|#{1,6}\s+)")
_SEPARATOR = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_TERMINAL = re.compile(r"[.!?…。！？؟।:：;；|][\"'”’」』）)*_\]]*\s*$")
_FULL_STOP = re.compile(r"\w[.。][\"'”’」』）)]?[*_\s]*$")
_COLON = re.compile(r"[:：][*_\s]*$")
_WIDE = re.compile(f"[{UNSPACED}]")
_CODE_LINE = re.compile(
    r"\s*(?:(?:def|class)\s+\w+\s*[(:]|import\s+[\w.]+(?:\s+as\s+\w+)?\s*$|from\s+[\w.]+\s+import\b.*|return\b.*[;)]\s*$|#include\b|"
    r"(?:public|private|protected|static|const|let|var|function|func|fn)\s+[\w<>\[\]]+.*[{;=(]|(?:if|for|while|else|elif|try|except|with)\b[^.!?]*[:{]\s*$|"
    r"[\w.\[\]]+\s*(?:=|\+=|==|:=)\s*[\w\"'(\[{].*$|[\w.]+\([^ ]*\)\s*;?$|[{}\[\]();]+\s*$|"
    r".*[=(){}\[\]<>].*;\s*$|.*[{}]\s*$|\$ [a-z./~]\S*|(?:SELECT|INSERT|UPDATE|DELETE|CREATE)\b.*|</?\w[^>]*>\s*$)"
)


_EQUATION = re.compile(r"\s*[\w.\[\]]+\s*=\s*[^=;]*$")
"""Of one line alone, as likely a sum («total = 45 euros») as a program."""
_RUN_OF_WORDS = re.compile(rf"(?:[^\W\d_]{{2,}},? ){{3}}[^\W\d_]{{2,}}|[{UNSPACED}]{{4}}")


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


def layout_of(answer: str) -> Layout:
    """The blocks of an answer in order. Fenced code, reasoning in tags and horizontal rules are left out."""
    lines, code = _prose_lines(answer)
    written = [line.text for line in lines if line.text.strip()]
    if written and all(map(_is_code, written)) and not (len(written) == 1 and _EQUATION.match(written[0])):
        code, lines = True, []
    return Layout(tuple(_blocks(lines)), code)


def _is_code(text: str) -> bool:
    """A line of a program without a fence; never one with a run of words, whatever mark it ends in."""
    if len(text) > 2 * CODE_ENDS:
        # Code shows at both ends of a line; the patterns would look at each bracket of a long one again and again.
        text = text[:CODE_ENDS] + text[-CODE_ENDS:]
    return bool(_CODE_LINE.match(text)) and not _RUN_OF_WORDS.search(text)


def _prose_lines(answer: str) -> tuple[list[_Line], bool]:
    lines: list[_Line] = []
    code = False
    fence = thinking = ""
    at = 0
    for raw in answer.splitlines(keepends=True):
        line = _Line(at, at + len(raw.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")), raw.rstrip())
        at += len(raw)
        if fence:
            if line.text.strip().startswith(fence) and not line.text.strip(fence[0] + " \t"):
                fence = ""
            continue
        if thinking:
            close = raw.find(thinking)
            if close < 0:
                continue
            start = line.start + close + len(thinking)
            line, thinking = _Line(start, line.end, answer[start : line.end]), ""
        if opening := _FENCE.match(line.text):
            rest = line.text[opening.end() :]
            if opening[1][0] in rest:  # ```code``` on one line
                code = True
                continue
            fence, code = opening[1], True
            continue
        if (tag := _THINKING.search(line.text)) and not line.text[: tag.start()].strip():
            thinking = f"</{tag[1]}>"
            close = line.text.find(thinking)
            if close < 0:
                continue
            start = line.start + close + len(thinking)
            line, thinking = _Line(start, line.end, answer[start : line.end]), ""
        lines.append(line)
    return lines, code


def _is_heading(text: str) -> bool:
    """Marked as one, and no whole sentence: «**The fee is 30 euros.**» is emphasis."""
    if not (_HEADING.match(text) or _BOLD_LINE.match(text)):
        return False
    return not (_FULL_STOP.search(text) and (len(text.split()) > 3 or len(_WIDE.findall(text)) > 4))


def _blocks(lines: list[_Line]) -> Iterator[Block]:
    i = 0
    alone = sum(bool(line.text.strip()) for line in lines) == 1
    while i < len(lines):
        line = lines[i]
        if not line.text.strip():
            i += 1
        elif "|" in line.text and _is_table(lines, i):
            stop = i
            while stop < len(lines) and "|" in lines[stop].text:
                stop += 1
            yield from _rows(lines[i:stop])
            i = stop
        elif _RULE.match(line.text):
            i += 1
        elif _is_heading(line.text) or _underlined(lines, i):
            yield Block(Kind.HEADING, line.start, line.end)
            i += 1
        else:
            marker = _MARKER.match(line.text)
            if marker and alone and not line.text[marker.end() :].strip():
                marker = None  # «26.» is an answer, not the first item of a list
            kind = Kind.ITEM if marker else Kind.PROSE
            start = line.start + (marker.end() if marker else _quote_length(line.text))
            stop = i + 1
            while stop < len(lines) and _continues(lines[stop - 1].text, lines[stop].text):
                stop += 1
            end = lines[stop - 1].end
            bold_item = kind is Kind.ITEM and bool(_BOLD_LINE.match(line.text[start - line.start :]))
            if _COLON.search(lines[stop - 1].text) and (bold_item or _something_follows(lines, stop)):
                kind = Kind.LEAD
            yield Block(kind, start, end)
            i = stop


def _something_follows(lines: list[_Line], stop: int) -> bool:
    return any(line.text.strip() for line in lines[stop : stop + 3])


def _underlined(lines: list[_Line], i: int) -> bool:
    text = lines[i + 1].text.strip() if i + 1 < len(lines) else ""
    return len(text) >= 3 and not text.strip("=") and not _MARKER.match(lines[i].text)


def _quote_length(text: str) -> int:
    found = _QUOTE.match(text)
    return found.end() if found else 0


def _continues(text: str, following: str) -> bool:
    """Whether `following` is the rest of a paragraph that was wrapped at `text`."""
    rest = following.strip()
    if not rest or _TERMINAL.search(text) or _FENCE.match(following) or _HEADING.match(following) or "|" in following:
        return False
    if (
        _MARKER.match(following)
        or _RULE.match(following)
        or _BOLD_LINE.match(following)
        or following.lstrip().startswith(">")
    ):
        return False
    wide = bool(_WIDE.search(text[-4:]))
    return rest[0].islower() or text.rstrip()[-1] in ",，、" or len(text) >= (WRAP // 2 if wide else WRAP)


def _is_table(lines: list[_Line], i: int) -> bool:
    text = lines[i].text.strip()
    if text.startswith("|") and text.count("|") >= 2:
        return True
    following = lines[i + 1].text if i + 1 < len(lines) else ""
    return "|" in following and bool(_SEPARATOR.match(following))


def _cells(text: str) -> list[str]:
    return [
        cell.strip().replace("\\|", "|")
        for cell in re.split(r"(?<!\\)\|", text.strip().removeprefix("|").removesuffix("|"))
    ]


def _rows(lines: list[_Line]) -> Iterator[Block]:
    headed = len(lines) > 1 and bool(_SEPARATOR.match(lines[1].text))
    header = _cells(lines[0].text) if headed and len(lines) > 2 else []
    for line in lines[1:] if header else lines:
        if _SEPARATOR.match(line.text):
            continue
        cells = _cells(line.text)
        named = [
            f"{header[k]}: {cell}" if k < len(header) and header[k] else cell for k, cell in enumerate(cells) if cell
        ]
        if any(c.isalnum() for cell in cells for c in cell):
            indent = len(line.text) - len(line.text.lstrip())
            yield Block(Kind.ROW, line.start + indent, line.start + len(line.text), "; ".join(named))
