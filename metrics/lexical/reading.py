"""A text as the lexical judge reads it: sentences with their content terms, names, quantities, negations and poles.

A term is the stem of a content word, or two neighbouring characters in scripts without spaces. Reading a text depends
on nothing but the text, so chunks that recur are read once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from metrics.language import UNSPACED
from metrics.lexical.bounds import Mark, marks, segments
from metrics.lexical.negation import WORD, Reach, reaches_of
from metrics.lexical.quantities import COUNTERS, STAND_IN, Quantity, quantities
from metrics.lexical.tables import Table, tables, with_units
from metrics.lexical.words import any_of, fold, stem, unit_lists, word_lists
from metrics.sentences import sentence_spans

MAX_TERMS = 400
MAX_MARKS = 40
"""Terms, and numbers, negators, opposites and prepositions each, that are read of one sentence; more is none."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a text; `terms[i]` begins at character `places[i]` of the text."""

    start: int
    end: int
    terms: tuple[str, ...]
    places: tuple[int, ...]
    vocabulary: frozenset[str]
    words: frozenset[str]
    """Everything as written: function words, numbers and inflected forms too."""
    names: frozenset[str]
    """Terms that are written like a name; of scripts that know capitals only."""
    numbers: tuple[Quantity, ...]
    heads: tuple[tuple[str, ...], ...]
    """Of each negator the term that it stands before, then others that it may deny as well: «contains no gluten»."""
    negated: frozenset[str]
    """Terms within reach of a negator, heads among them."""
    plain: frozenset[str]
    """Terms that also stand where no negator reaches."""
    supposed: frozenset[str]
    """Terms of a clause that supposes: «if it does not rain», «those who do not pay», «如果没有»."""
    denied: frozenset[Quantity]
    """Those of `numbers` that a negator stands right before: «is not 26 days», «do not get 13 days», «不是14周»."""
    marks: tuple[Mark, ...]
    """The numbers, those of one date together, with what is said of their bounds."""
    negations: int
    """But for those that are part of a comparison: «not more than 5»."""
    poles: tuple[tuple[str, bool, int], ...]
    """Words that have an opposite, whether each is negated, and its character."""
    roles: tuple[tuple[str, int], ...]
    """Words that say in which role the next term stands, and the place of that term in `terms`: «from», 3."""
    passive: bool
    speaker: bool
    """Somebody speaks of himself: I, my, we."""
    cuts: tuple[int, ...] = ()
    """Characters of the text at which its segments begin: see `segments`."""
    row: bool = False
    """A row of a table: what it says does not go on in the next one."""

    def segment(self, at: int) -> int:
        """Which segment of the sentence holds character `at` of the text."""
        return bisect_right(self.cuts, at)

    def around(self, at: int, reach: int) -> frozenset[str]:
        """Terms that begin within `reach` characters of character `at` of the sentence."""
        low, high = self.start + at - reach, self.start + at + reach
        return frozenset(t for t, place in zip(self.terms, self.places, strict=True) if low <= place <= high)


@dataclass(frozen=True, slots=True)
class Passage:
    """A whole text, read."""

    sentences: tuple[Sentence, ...]


_LISTS = word_lists()
_STOP = frozenset(_LISTS["stop"]["english"].split())
_STOP_CHARS = frozenset(_LISTS["stop"]["chinese"])
_SPEAKER = frozenset(_LISTS["speaker"]["english"])
_ROLES = frozenset(_LISTS["relations"]["roles"])


def _opposites(pairs: str) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in re.sub(r"\s*\n\s*", "", pairs).split("|"):
        one, other = pair.split()
        for a, b in ((one, other), (other, one)):
            table.setdefault(a, set()).add(b)
    return {word: frozenset(others) for word, others in table.items()}


_AS_WRITTEN = frozenset(_LISTS["antonyms"]["as_written"])
_NO_POLES = (_STOP - frozenset(_LISTS["antonyms"]["meant"])) | frozenset(_LISTS["antonyms"]["no_poles"])


_ENDS = frozenset({"first"})
"""Numbers with an opposite that is none: first and last."""


_COUNTED = any_of(word for word in unit_lists()["numbers"]["english"] if word != "one")
_LAST = re.compile(rf"[ -](?:\d|few|couple|{any_of(_LISTS['antonyms']['no_last'])}|{_COUNTED})")
"""Behind «last», where it says when and is no end of a row: «last year», «the last six games»."""


def _pole(word: str) -> str:
    return word if word in _AS_WRITTEN else stem(word)


_ENGLISH_OPPOSITES = {
    _pole(word): frozenset(_pole(other) for other in others)
    for word, others in _opposites(_LISTS["antonyms"]["english"]).items()
}
_CHINESE_OPPOSITES = _opposites(_LISTS["antonyms"]["chinese"])
OPPOSITES = _ENGLISH_OPPOSITES | _CHINESE_OPPOSITES
"""Stem (or Chinese word) → its opposites."""


_TOKEN = re.compile(
    rf"(?P<wide>[{UNSPACED}]+)|(?P<stand_in>{STAND_IN})|(?P<word>(?:[a-z]\.){{2,6}}|[^\W\d_{UNSPACED}][^\W_{UNSPACED}]*(?:['&-][^\W_{UNSPACED}]+)*)"
)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_SUPPOSED_END = re.compile(r"[,;:.!?()，；：。！？]|\bthen\b")
_SUPPOSING = re.compile(rf"\b(?:{any_of(_LISTS['supposing']['english'])})\b|{any_of(_LISTS['supposing']['chinese'])}")
_DENIAL = re.compile(
    rf"(?:(?<!or )(?<!\w)(?:{any_of(_LISTS['denial']['english'])})|n't)"
    rf"(?:\s(?:{any_of(_LISTS['denial']['english_between'])}))*\s$|"
    rf"(?<![是得])(?:{any_of(_LISTS['denial']['chinese'])})(?:{any_of(_LISTS['negation']['chinese_auxiliary'])})*\s?$"
)
DENIAL_REACH = 40
"""Characters before a quantity in which a negator of it is looked for."""
_CHINESE_POLE = re.compile(any_of(list(_CHINESE_OPPOSITES)))
_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|been|be|being)\s+(?:\w+\s+){0,2}?"
    rf"(?:\w+(?:ed|en|own|ught|old|ade|ung|et)|{any_of(_LISTS['relations']['participles'])})\b|[被由]"
)
_CHINESE_ROLE = re.compile(rf"(?:{any_of(_LISTS['relations']['compare_chinese'])})")
_HAN = re.compile(f"[{UNSPACED}]")
_GLUED = re.compile(r"(?<=[a-z]{3}[.!?])(?=[A-Z][a-z])")
_REACH_SUPPOSED = 120
"""Characters that a word which supposes reaches over, at most to the end of its clause."""


def read(text: str) -> Passage:
    """All sentences of a text. Linear in its length."""
    folded = fold(text)
    lines = list(_lines(text))
    rows = tables(folded, lines)
    sentences: list[Sentence] = []
    headers: dict[int, frozenset[str]] = {}
    for begin, end in lines:
        table = rows.get(begin)
        vocabulary: frozenset[str] = frozenset()
        for low, high in sentence_spans(text, begin, end):
            for a, b in _unglued(text, low, high):
                sentence = read_sentence(text, folded, a, b, table)
                vocabulary |= sentence.vocabulary
                if table:  # a row says what its header says
                    said = sentence.vocabulary | headers.get(table.start, frozenset())
                    sentence = replace(sentence, vocabulary=said, row=True)
                sentences.append(sentence)
        headers[begin] = vocabulary
    return Passage(tuple(sentences))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            yield at, at + len(line)
        at += len(line)


def _unglued(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Scraped passages often lack the blank after a full stop: «in the oven.Roast for an hour»."""
    cuts = [m.start() for m in _GLUED.finditer(text, start, end)]
    yield from zip([start, *cuts], [*cuts, end], strict=True)


def read_sentence(text: str, folded: str, start: int, end: int, table: Table | None = None) -> Sentence:
    """The sentence `text[start:end]`; `folded` is the folded whole, `table` the one that it is a row of."""
    sentence = folded[start:end]
    numbers = list(with_units(sentence, quantities(sentence)[:MAX_MARKS], table))
    counted = bytearray(len(sentence))
    for quantity in numbers:
        counted[quantity.start : quantity.end] = b"\1" * (quantity.end - quantity.start)
    marked = marks(sentence, numbers)
    for mark in marked:  # the comparison is held against the other one, and is no word of its own
        behind = mark.parts[-1].end
        counted[mark.bound : mark.number] = b"\1" * (mark.number - mark.bound)
        if not (mark.per or mark.time):
            counted[behind : mark.end] = b"\1" * (mark.end - behind)
    terms, places, words, names = _terms(text, sentence, start, counted)
    compared = [(mark.start, mark.number) for mark in marked if mark.size]
    reaches = list(islice(reaches_of(sentence, compared), MAX_MARKS))
    supposing = _supposing(sentence)
    negated, plain, supposed = set(), set(), set()
    heads: list[list[str]] = [[] for _ in reaches]
    at = 0
    for k, (term, place) in enumerate(zip(terms, places, strict=True)):
        while at < len(reaches) and reaches[at].stop <= place:
            at += 1
        reach = reaches[at] if at < len(reaches) and reaches[at].start <= place else None
        if reach is None:
            plain.add(term)
        else:
            negated.add(term)
            if reach.firm and (reach.subject or not heads[at]):
                heads[at].append(term)
                if reach.verb >= 0 and k and places[k - 1] >= reach.verb:  # «contains no gluten» denies «contains» too
                    heads[at].append(terms[k - 1])
                    negated.add(terms[k - 1])
        if supposing[place]:
            supposed.add(term)
    return Sentence(
        start=start,
        end=end,
        terms=tuple(terms),
        places=tuple(start + place for place in places),
        vocabulary=frozenset(terms),
        words=words,
        names=frozenset(names),
        numbers=tuple(numbers),
        heads=tuple(tuple(head) for head in heads if head),
        negated=frozenset(negated),
        plain=frozenset(plain),
        supposed=frozenset(supposed),
        denied=frozenset(q for q in numbers if _DENIAL.search(sentence, max(q.start - DENIAL_REACH, 0), q.start)),
        marks=marked,
        negations=sum(reach.firm for reach in reaches),
        poles=tuple(islice(_poles(sentence, reaches, counted), MAX_MARKS)),
        roles=tuple(islice(_roles(sentence, places), MAX_MARKS)),
        passive=bool(_PASSIVE.search(sentence)),
        cuts=tuple(start + at for at in segments(sentence, marked)),
        speaker=not _SPEAKER.isdisjoint(words),
    )


def _terms(
    text: str, sentence: str, start: int, counted: bytearray
) -> tuple[list[str], list[int], frozenset[str], set[str]]:
    terms: list[str] = []
    places: list[int] = []
    words = set(_FIGURE.findall(sentence))
    names: set[str] = set()
    first = True
    for match in _TOKEN.finditer(sentence):
        if len(terms) >= MAX_TERMS:
            break
        at, token = match.start(), match[0]
        if match["stand_in"]:
            terms.append(token)
            places.append(at)
            words.add(token)
            names.add(token)
            first = False
            continue
        if match["wide"]:
            if len(token) == 1 and (counted[at] or (token in COUNTERS and at and counted[at - 1])):
                continue  # a part of a number: in «第15张» the counter is no word, as it is none in «第15张单曲»
            for k in range(max(len(token) - 1, 1)):
                pair = token[k : k + 2]
                words.add(pair)
                if not (
                    counted[at + k]
                    or counted[at + k + len(pair) - 1]
                    or pair[0] in _STOP_CHARS
                    or pair[-1] in _STOP_CHARS
                ):
                    terms.append(pair)
                    places.append(at + k)
            first = False
            continue
        words.add(token)
        if not counted[at] and token not in _STOP and not token.endswith("n't"):
            for part in _parts(token):
                key = stem(part)
                if key and part not in _STOP:
                    terms.append(key)
                    places.append(at)
                    if _is_name(text, start + at, start + at + len(token), first):
                        names.add(key)
        first = False
    return terms, places, frozenset(words), names


def _parts(token: str) -> list[str]:
    """«on-site» in two, «non-refundable» in one, as «nonrefundable» is."""
    parts = token.split("-")
    return ["".join(parts[:2]), *parts[2:]] if parts[0] == "non" else parts


def _is_name(text: str, start: int, end: int, first: bool) -> bool:
    """Digits or capitals inside, or a capital where no sentence begins; there, a capital before another capital."""
    word = text[start:end]
    if any(c.isdigit() or c.isupper() for c in word[1:]):
        return True
    if not word[:1].isupper():
        return False
    return not first or (text[end : end + 1] == " " and text[end + 1 : end + 2].isupper())


def _supposing(sentence: str) -> bytearray:
    """1 at the characters of clauses that suppose."""
    marks = bytearray(len(sentence))
    for match in islice(_SUPPOSING.finditer(sentence), MAX_MARKS):
        stop = _SUPPOSED_END.search(sentence, match.end(), match.end() + _REACH_SUPPOSED)
        end = stop.start() if stop else min(match.end() + _REACH_SUPPOSED, len(sentence))
        marks[match.end() : end] = b"\1" * (end - match.end())
    return marks


def _poles(sentence: str, reaches: list[Reach], counted: bytearray) -> Iterator[tuple[str, bool, int]]:
    for match in WORD.finditer(sentence):
        word = match[0] if match[0] in _ENGLISH_OPPOSITES else stem(match[0])
        if (
            word in _ENGLISH_OPPOSITES
            and not (counted[match.start()] and word not in _ENDS)
            and not (word != match[0] and match[0] in _NO_POLES)
            and not (word == "last" and _LAST.match(sentence, match.end()))
        ):
            yield word, any(r.start <= match.start() < r.stop for r in reaches), match.start()
    for match in _CHINESE_POLE.finditer(sentence):
        negated = any(r.start <= match.end() - 1 < r.stop or r.start == match.end() for r in reaches)
        yield match[0], negated, match.start()


def _roles(sentence: str, places: list[int]) -> Iterator[tuple[str, int]]:
    """Prepositions with the term that follows at once."""
    spots = [(m.end(), m[0]) for m in WORD.finditer(sentence) if m[0] in _ROLES]
    spots += [(m.end(), m[0]) for m in _CHINESE_ROLE.finditer(sentence)]
    k = 0
    for end, role in sorted(spots):
        while k < len(places) and places[k] < end:
            k += 1
        if k < len(places) and places[k] - end <= 8:
            yield role, k
