"""Where a statement and a window of evidence about the same thing disagree, with the words for who reads the case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from metrics.lexical.chinese_names import Name, others_in_place
from metrics.lexical.evidence import Window
from metrics.lexical.kinds import SHARED, Conflict, Kind, same_place
from metrics.lexical.number_conflicts import number_conflicts
from metrics.lexical.order import order_conflicts
from metrics.lexical.quantities import ORDINAL
from metrics.lexical.reading import OPPOSITES, Sentence
from metrics.lexical.words import any_of, fold, stem, word_lists

RIVALS = 2
"""Names of the evidence that may stand for one of the statement; among more nobody knows which."""
SHORTEST_BASE = 4
"""Letters of a stem that un- or non- may stand before: «unit» denies no «it»."""


_TITLES = frozenset(word_lists()["names"]["english_titles"])
_TITLED = re.compile(rf"\b(?i:({any_of(_TITLES)}))\.?\s+([A-Z][\w'-]+)")
_OTHER_ROLE = {
    role: other
    for pair in map(str.split, word_lists()["relations"]["opposite_roles"])
    for role, other in (pair, reversed(pair))
}


def conflicts(statement: Sentence, text: str, window: Window, source: str) -> list[Conflict]:
    """All disagreements; `text` and `source` are the texts that statement and window were read from."""
    found = list(number_conflicts(statement, text, window, source))
    found += _negations(statement, window)
    found += _opposites(statement, window)
    found += _opposite_roles(statement, window)
    found += order_conflicts(statement, text, window, source)
    if not any(conflict.kind is Kind.NUMBER for conflict in found):
        found += _substitutions(statement, window)
    return found


def other_name(absent: Sequence[str], window: Window, statement: Sentence) -> Iterator[Conflict]:
    """A name that no context holds, where the evidence names somebody or something else."""
    there = dict.fromkeys(term for s in window.sentences for term in s.terms if term in s.names)
    rivals = [name for name in there if name not in statement.vocabulary]
    initials = "".join(name[0] for name in there)
    for name in absent:
        if 0 < len(rivals) <= RIVALS and name not in initials:
            yield Conflict(Kind.NAME, name, " / ".join(rivals), terms=(name,))


def other_titled(
    absent: Sequence[str], statement: Sentence, text: str, window: Window, source: str
) -> Iterator[Conflict]:
    """«Dr Benning», whom no context names, where the evidence has «Dr Farrow»."""
    if not absent or statement.words.isdisjoint(_TITLES):
        return
    there = {m[1].lower(): m[2] for s in window.sentences for m in _TITLED.finditer(source, s.start, s.end)}
    for match in _TITLED.finditer(text):
        name, other = stem(fold(match[2])), there.get(match[1].lower(), "")
        if name in absent and other and stem(fold(other)) not in statement.vocabulary:
            yield Conflict(Kind.NAME_IN_PLACE, match[0], f"{match[1]} {other}", terms=(name,))


def name_in_place(names: list[Name], statement: Sentence, text: str, window: Window, source: str) -> Iterator[Conflict]:
    """A Chinese name that no context holds, where the evidence has another one between the same characters."""
    folded = fold(text) if names else ""
    for sentence in window.sentences if names else ():
        for name, other in others_in_place(names, folded, fold(source[sentence.start : sentence.end])):
            own = (
                t for t, at in zip(statement.terms, statement.places, strict=True) if name.start - 1 <= at < name.end
            )
            yield Conflict(Kind.NAME_IN_PLACE, name.text, other, terms=tuple(own))


def _negations(statement: Sentence, window: Window) -> Iterator[Conflict]:
    for sentence in window.sentences:
        shared = statement.vocabulary & sentence.vocabulary
        if len(shared) < SHARED * len(statement.vocabulary) or _mirrored(statement, sentence):
            continue
        shared -= statement.supposed ^ sentence.supposed  # «if it does not fit» says nothing of what fits
        for head in _unshared(statement, sentence, shared):
            yield Conflict(Kind.NEGATION, f"not {head}", head)
        for head in _unshared(sentence, statement, shared):
            yield Conflict(Kind.NEGATION, head, f"not {head}")


def _mirrored(statement: Sentence, sentence: Sentence) -> bool:
    """«Bags over 5 kg are not allowed» and «bags under 5 kg are allowed»: bound and verb both the other way round."""
    if statement.negations % 2 == sentence.negations % 2:
        return False
    return any(said.against(m) and said.same_quantity(m) for said in statement.marks for m in sentence.marks)


def _unshared(one: Sentence, other: Sentence, shared: frozenset[str]) -> Iterator[str]:
    """What `one` denies and `other` says, where `other` denies nothing that the same negator may deny."""
    for head, *others in one.heads:
        if head in shared and head not in one.plain and other.negated.isdisjoint([head, *others]):
            yield head


def _opposites(statement: Sentence, window: Window) -> Iterator[Conflict]:
    mine = {word for word, _, _ in statement.poles}
    for sentence in window.sentences:
        theirs = {word for word, _, _ in sentence.poles}
        for word, negated, at in statement.poles:
            if word in theirs:
                continue
            for other, other_negated, there in sentence.poles:
                if other not in OPPOSITES[word] or other in mine or other_negated != negated:
                    continue
                if same_place(statement, at, sentence, there):
                    yield Conflict(Kind.OPPOSITE, word, other, terms=(word, stem(word)))
        yield from _other_part(statement, sentence)
        for term, base in _denied_by_prefix(statement, sentence):
            if term not in window.vocabulary:
                yield Conflict(Kind.OPPOSITE, term, base, terms=(term,))
        for term, base in _denied_by_prefix(sentence, statement):
            yield Conflict(Kind.OPPOSITE, base, term)


def _other_part(statement: Sentence, sentence: Sentence) -> Iterator[Conflict]:
    """«The last bus leaves at 5:10» against «the first bus leaves at 5:10, the last one at 23:40»."""
    if not sentence.cuts or len(sentence.poles) < 2:
        return
    count = Counter(word for word, _, _ in sentence.poles)
    there = {w: sentence.segment(sentence.start + at) for w, _, at in sentence.poles if count[w] == 1}
    for word, _, _ in statement.poles:
        for other in sorted(OPPOSITES[word] & there.keys()):
            own, its = there.get(word), there[other]
            if own is None or own == its or any(other == pole for pole, _, _ in statement.poles):
                continue
            parts: dict[str, set[int]] = {}
            for term, place in zip(sentence.terms, sentence.places, strict=True):
                parts.setdefault(term, set()).add(sentence.segment(place))
            said = [parts[term] for term in statement.vocabulary if term in parts and term not in (word, stem(word))]
            if {its} in said and {own} not in said and not _numbers_in(statement, sentence, own):
                yield Conflict(Kind.OPPOSITE, word, other)


def _numbers_in(statement: Sentence, sentence: Sentence, segment: int) -> bool:
    """Whether a number of the statement stands in a segment of the evidence."""
    marks = [m for m in sentence.marks if sentence.segment(sentence.start + m.number) == segment]
    return any(mark.same_quantity(m) for mark in statement.marks for m in marks if m.parts[0].unit != ORDINAL)


def _opposite_roles(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """«Before noon» against «after noon»: such words stand among stop words and count before the same term only."""
    mine = {(role, statement.terms[at]) for role, at in statement.roles}
    there = {(role, s.terms[at]) for s in window.sentences for role, at in s.roles}
    for role, term in sorted(mine - there):
        other = _OTHER_ROLE.get(role)
        if other and (other, term) in there and (other, term) not in mine:
            yield Conflict(Kind.OPPOSITE, f"{role} {term}", f"{other} {term}")


def _denied_by_prefix(one: Sentence, other: Sentence) -> Iterator[tuple[str, str]]:
    """Terms of `one` alone whose base `other` says: unsafe against safe. Who says both contrasts them himself."""
    for term in sorted(one.vocabulary - other.vocabulary):
        for base in _bases(term):
            if base in other.plain and base not in one.vocabulary and "non" not in other.words:
                yield term, base


_PREFIXES = ("un", "in", "im", "non", "dis", "ir", "il")


def _bases(term: str) -> Iterator[str]:
    """safe of unsafe."""
    if term.startswith(_PREFIXES):
        bases = (term[len(prefix) :] for prefix in _PREFIXES if term.startswith(prefix))
        yield from (base for base in bases if len(base) >= SHORTEST_BASE)


def _substitutions(statement: Sentence, window: Window) -> Iterator[Conflict]:
    """Something else stands in the evidence where the statement has words of its own, between the same neighbours."""
    for sentence in window.sentences:
        positions: dict[str, int] = {}
        for k, term in enumerate(sentence.terms):
            positions.setdefault(term, k)
        mine = statement.terms
        k = 0
        while k < len(mine):
            if mine[k] in positions:
                k += 1
                continue
            stop = k
            while stop < len(mine) and mine[stop] not in positions:
                stop += 1
            left = positions[mine[k - 1]] if k else -1
            right = positions[mine[stop]] if stop < len(mine) else len(sentence.terms)
            between = sentence.terms[left + 1 : right]
            flanks = (k > 0) + (stop < len(mine))
            if (
                flanks
                and 0 < len(between) <= stop - k + 2
                and stop - k <= 5
                and not statement.vocabulary & set(between)
            ):
                named = bool(statement.names & set(mine[k:stop])) or bool(sentence.names & set(between))
                yield Conflict(
                    Kind.SUBSTITUTION,
                    joined(mine[k:stop]),
                    joined(between),
                    (0.5 + 0.5 * named) * flanks / 2,
                    mine[k:stop],
                )
            k = stop


def joined(terms: tuple[str, ...]) -> str:
    """Terms as one readable piece: overlapping pairs of characters grow together.

    >>> joined(("退款", "款期", "期限")), joined(("red", "car"))
    ('退款期限', 'red car')
    """
    text = ""
    for term in terms:
        if text and len(term) == 2 and not term.isascii() and text[-1] == term[0]:
            text += term[1]
        else:
            text += (" " if text and term.isascii() else "") + term
    return text
