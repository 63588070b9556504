"""A text as the lexical judge reads it: sentences with their content terms, names, quantities, negations and poles.

A term is the stem of a content word, or two neighbouring characters in scripts without spaces. Reading a text depends
on nothing but the text, so chunks that recur are read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from metrics.language import UNSPACED
from metrics.lexical.quantities import COUNTERS, STAND_IN, Quantity, quantities
from metrics.lexical.words import fold, stem, word_lists
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
    heads: frozenset[str]
    """Terms that a negator stands before."""
    negated: frozenset[str]
    """Terms within reach of a negator, heads among them."""
    plain: frozenset[str]
    """Terms that also stand where no negator reaches."""
    supposed: frozenset[str]
    """Terms of a clause that supposes: «if it does not rain», «those who do not pay», «如果没有»."""
    denied: frozenset[Quantity]
    """Those of `numbers` that a negator stands right before: «is not 26 days», «do not get 13 days», «不是14周»."""
    negations: int
    poles: tuple[tuple[str, bool, int], ...]
    """Words that have an opposite, whether each is negated, and its character."""
    roles: tuple[tuple[str, int], ...]
    """Words that say in which role the next term stands, and the place of that term in `terms`: «from», 3."""
    passive: bool
    speaker: bool
    """Somebody speaks of himself: I, my, we."""

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
_NEGATORS = frozenset(_LISTS["negation"]["english"])


def _opposites(pairs: str) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in re.sub(r"\s*\n\s*", "", pairs).split("|"):
        one, other = pair.split()
        for a, b in ((one, other), (other, one)):
            table.setdefault(a, set()).add(b)
    return {word: frozenset(others) for word, others in table.items()}


_AS_WRITTEN = frozenset(_LISTS["antonyms"]["as_written"])
_NO_POLES = _STOP - frozenset(_LISTS["antonyms"]["meant"])


def _pole(word: str) -> str:
    return word if word in _AS_WRITTEN else stem(word)


_ENGLISH_OPPOSITES = {
    _pole(word): frozenset(_pole(other) for other in others)
    for word, others in _opposites(_LISTS["antonyms"]["english"]).items()
}
_CHINESE_OPPOSITES = _opposites(_LISTS["antonyms"]["chinese"])
OPPOSITES = _ENGLISH_OPPOSITES | _CHINESE_OPPOSITES
"""Stem (or Chinese word) → its opposites."""


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_TOKEN = re.compile(
    rf"(?P<wide>[{UNSPACED}]+)|(?P<stand_in>{STAND_IN})|(?P<word>(?:[a-z]\.){{2,6}}|[^\W\d_{UNSPACED}][^\W_{UNSPACED}]*(?:['&-][^\W_{UNSPACED}]+)*)"
)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_CLAUSE_END = re.compile(r"[,;:.!?()，；：。！？、]|\b(?:but|although|though|while|and)\b|但|而")
_SUPPOSED_END = re.compile(r"[,;:.!?()，；：。！？]|\bthen\b")
_NEGATOR_WORD = re.compile(r"\b[a-z]*n ?' ?t\b|\b[a-z]+\b")
_ENGLISH_EXCEPT = re.compile(rf"\b(?:{_any(_LISTS['negation']['english_except'])}|no (?=\d))")
_ENGLISH_HIDDEN = re.compile(rf"\b(?:{_any(_LISTS['negation']['english_hidden'])})\b")
_ELLIPSIS = re.compile(r"\s*(?:[,;.!?)]|$|do(?:es)? (?:so|it|that)\b)")
_SUPPOSING = re.compile(rf"\b(?:{_any(_LISTS['supposing']['english'])})\b|{_any(_LISTS['supposing']['chinese'])}")
_CHINESE_NEGATOR = re.compile(
    rf"(?P<skip>{_any(_LISTS['negation']['chinese_except'])})|(?P<negator>{_any(_LISTS['negation']['chinese'])})"
)
_CHINESE_AUXILIARY = re.compile(rf"(?:{_any(_LISTS['negation']['chinese_auxiliary'])})*")
_DENIAL = re.compile(
    rf"(?:(?<!or )(?<!\w)(?:{_any(_LISTS['denial']['english'])})|n't)"
    rf"(?:\s(?:{_any(_LISTS['denial']['english_between'])}))*\s$|"
    rf"(?<![是得])(?:{_any(_LISTS['denial']['chinese'])})(?:{_any(_LISTS['negation']['chinese_auxiliary'])})*\s?$"
)
DENIAL_REACH = 40
"""Characters before a quantity in which a negator of it is looked for."""
_CHINESE_POLE = re.compile(_any(list(_CHINESE_OPPOSITES)))
_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|been|be|being)\s+(?:\w+\s+){0,2}?\w+(?:ed|en|own|ught|old|ade|ung|et)\b|[被由]"
)
_CHINESE_ROLE = re.compile(rf"(?:{_any(_LISTS['relations']['compare_chinese'])})")
_HAN = re.compile(f"[{UNSPACED}]")
_GLUED = re.compile(r"(?<=[a-z]{3}[.!?])(?=[A-Z][a-z])")
_REACH_WIDE, _REACH = 8, 40
"""Characters that a negator reaches over, at most to the end of its clause."""
_REACH_SUPPOSED = 120
"""The same of a word that supposes."""


def read(text: str) -> Passage:
    """All sentences of a text. Linear in its length."""
    folded = fold(text)
    sentences = []
    for begin, end in _lines(text):
        for low, high in sentence_spans(text, begin, end):
            for a, b in _unglued(text, low, high):
                sentences.append(read_sentence(text, folded, a, b))
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


def read_sentence(text: str, folded: str, start: int, end: int) -> Sentence:
    """The sentence `text[start:end]`; `folded` is the folded whole."""
    sentence = folded[start:end]
    numbers = quantities(sentence)[:MAX_MARKS]
    counted = bytearray(len(sentence))
    for quantity in numbers:
        counted[quantity.start : quantity.end] = b"\1" * (quantity.end - quantity.start)
    terms, places, words, names = _terms(text, sentence, start, counted)
    reaches = list(islice(_reaches(sentence), MAX_MARKS))
    supposing = _supposing(sentence)
    heads, negated, plain, supposed = set(), set(), set(), set()
    at = 0
    waiting = [firm for _, _, firm in reaches]
    for term, place in zip(terms, places, strict=True):
        while at < len(reaches) and reaches[at][1] <= place:
            at += 1
        if at < len(reaches) and reaches[at][0] <= place:
            negated.add(term)
            if waiting[at]:
                heads.add(term)
                waiting[at] = False
        else:
            plain.add(term)
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
        heads=frozenset(heads),
        negated=frozenset(negated),
        plain=frozenset(plain),
        supposed=frozenset(supposed),
        denied=frozenset(q for q in numbers if _DENIAL.search(sentence, max(q.start - DENIAL_REACH, 0), q.start)),
        negations=sum(firm for _, _, firm in reaches),
        poles=tuple(islice(_poles(sentence, reaches, counted), MAX_MARKS)),
        roles=tuple(islice(_roles(sentence, places), MAX_MARKS)),
        passive=bool(_PASSIVE.search(sentence)),
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


def _reaches(sentence: str) -> Iterator[tuple[int, int, bool]]:
    """Character ranges that a negator reaches over, and whether it denies what comes first in it.

    «prevents X from Y» and «rather than X» deny without saying of what (not firm); so does «X cannot.», which reaches
    back over its own clause.
    """
    excepted = [m.span() for m in _ENGLISH_EXCEPT.finditer(sentence)]
    found: list[tuple[int, int, bool]] = []
    for match in _NEGATOR_WORD.finditer(sentence):
        word = match[0]
        if not ("'" in word or word in _NEGATORS):
            continue
        if not any(low <= match.start() < high for low, high in excepted):
            end = _clause_end(sentence, match.end(), _REACH)
            if _ELLIPSIS.match(sentence, match.end()):
                found.append((_clause_start(sentence, match.start()), match.start(), False))
            else:
                found.append((match.end(), end, True))
    for match in _ENGLISH_HIDDEN.finditer(sentence):
        found.append((match.end(), _clause_end(sentence, match.end(), _REACH), False))
    for match in _CHINESE_NEGATOR.finditer(sentence):
        if match["negator"]:
            auxiliary = _CHINESE_AUXILIARY.match(sentence, match.end())
            begin = auxiliary.end() if auxiliary else match.end()
            found.append((begin, _clause_end(sentence, begin, _REACH_WIDE), True))
    found.sort()
    last = 0
    for low, high, firm in found:
        if max(low, last) < high:
            yield max(low, last), high, firm
            last = high
        else:
            yield low, low, firm


def _supposing(sentence: str) -> bytearray:
    """1 at the characters of clauses that suppose."""
    marks = bytearray(len(sentence))
    for match in islice(_SUPPOSING.finditer(sentence), MAX_MARKS):
        stop = _SUPPOSED_END.search(sentence, match.end(), match.end() + _REACH_SUPPOSED)
        end = stop.start() if stop else min(match.end() + _REACH_SUPPOSED, len(sentence))
        marks[match.end() : end] = b"\1" * (end - match.end())
    return marks


def _clause_start(sentence: str, at: int) -> int:
    """Where the clause that holds character `at` begins, at most `_REACH` characters before it."""
    ends = [m.end() for m in _CLAUSE_END.finditer(sentence, max(at - _REACH, 0), at)]
    return ends[-1] if ends else max(at - _REACH, 0)


def _clause_end(sentence: str, at: int, reach: int) -> int:
    stop = _CLAUSE_END.search(sentence, at + 1, at + reach)
    return stop.start() if stop else min(at + reach, len(sentence))


def _poles(sentence: str, reaches: list[tuple[int, int, bool]], counted: bytearray) -> Iterator[tuple[str, bool, int]]:
    for match in _NEGATOR_WORD.finditer(sentence):
        word = match[0] if match[0] in _ENGLISH_OPPOSITES else stem(match[0])
        if (
            word in _ENGLISH_OPPOSITES
            and not counted[match.start()]
            and not (word != match[0] and match[0] in _NO_POLES)
        ):
            yield word, any(low <= match.start() < high for low, high, _ in reaches), match.start()
    for match in _CHINESE_POLE.finditer(sentence):
        negated = any(low <= match.end() - 1 < high or low == match.end() for low, high, _ in reaches)
        yield match[0], negated, match.start()


def _roles(sentence: str, places: list[int]) -> Iterator[tuple[str, int]]:
    """Prepositions with the term that follows at once."""
    spots = [(m.end(), m[0]) for m in _NEGATOR_WORD.finditer(sentence) if m[0] in _ROLES]
    spots += [(m.end(), m[0]) for m in _CHINESE_ROLE.finditer(sentence)]
    k = 0
    for end, role in sorted(spots):
        while k < len(places) and places[k] < end:
            k += 1
        if k < len(places) and places[k] - end <= 8:
            yield role, k
