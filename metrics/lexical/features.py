"""What the logistic model sees of a statement against the contexts: features by the names in weights.json."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from metrics.language import UNSPACED
from metrics.lexical.chinese_names import Name, unknown_names
from metrics.lexical.conflicts import conflicts, name_in_place, other_name, other_titled
from metrics.lexical.evidence import NUMBER_WEIGHT, Index, Window
from metrics.lexical.kinds import Conflict, Kind
from metrics.lexical.reading import Sentence, read_sentence
from metrics.lexical.wording import WORD, as_written
from metrics.lexical.words import fold

VERSION = 2
"""Raise it when a feature changes its meaning: the weights must then be fitted anew."""
TRIED = 3
"""Windows whose conflicts are looked at."""
NEAR = 0.05
"""Coverage up to which another chunk's window is as good to show as the best one."""
CONFLICT_COST = 0.3
"""Coverage that a window with a full conflict must be ahead by to be chosen over one without."""

_WIDE = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Examined:
    """A statement held against the contexts: features by name, and what a reason is made of."""

    features: Mapping[str, float]
    window: Window | None
    """What is shown as evidence; the features are those of the best window, which says the same."""
    conflicts: tuple[Conflict, ...]
    agreement: float
    """Weighted share of the statement, without what is in conflict, that the window holds, in [0, 1]."""
    absent: tuple[str, ...]
    """Words of the statement that no context holds, in order; of what follows too."""
    absent_numbers: tuple[str, ...]
    absent_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A statement as it is held against a window."""

    statement: Sentence
    text: str
    names: tuple[str, ...]
    """Its names that no context holds."""
    unknown: list[Name]
    """What may be a name in a script without spaces, and no context holds."""


def examine(
    texts: Sequence[str], index: Index, sources: Sequence[str], similarities: Sequence[float | None] = ()
) -> list[Examined]:
    """Hold the statements of one answer against the contexts. `sources[window.source]` is what a window was read from.

    `similarities` of the first sources to the whole answer, where there are vectors, choose between windows that say
    the same; features and conflicts do not depend on them.
    """
    statements = [_without_joints(read_sentence(text, fold(text), 0, len(text)), index) for text in texts]
    together = _words(frozenset().union(*(statement.words for statement in statements)), index)
    close = index.close(dict.fromkeys(pair for statement in statements for pair in pairwise(statement.terms)))
    return [
        _examined(statement, text, index, sources, similarities, together, close)
        for statement, text in zip(statements, texts, strict=True)
    ]


def _examined(
    statement: Sentence,
    text: str,
    index: Index,
    sources: Sequence[str],
    similarities: Sequence[float | None],
    together: float,
    close: Container[tuple[str, str]],
) -> Examined:
    weights = {term: index.weight(term) for term in dict.fromkeys(statement.terms)}
    matches = {term: index.match(term)[0] for term in weights}
    total = sum(weights.values()) + NUMBER_WEIGHT * len(statement.numbers)
    windows = index.windows(statement, weights)
    absent = [term for term in weights if not matches[term]]
    names = [term for term in absent if term in statement.names]
    missing = [q for q in statement.numbers if not index.holders(q)]
    claim = _Claim(statement, text, tuple(names), unknown_names(fold(text), index.words))
    best, found = _best(claim, windows, sources)
    agreement = _agreement(best, found, weights, total) if best else 0.0
    held = sum(weights[t] * matches[t] for t in weights) + NUMBER_WEIGHT * (len(statement.numbers) - len(missing))
    strength = dict.fromkeys(Kind, 0.0)
    for conflict in found:
        strength[conflict.kind] = max(strength[conflict.kind], conflict.strength)
    evidence = [(s, sources[best.source]) for s in best.sentences] if best else []
    features = {
        "coverage": held / total if total else 0.0,
        "best_window": best.coverage if best else 0.0,
        "best_sentence": max((w.coverage for w in windows if len(w.sentences) == 1), default=0.0),
        "words": _words(statement.words, index),
        "answer": together,
        "pairs": _pairs(statement, index, close),
        "novel": math.log1p(sum(_unit(t) for t in absent)),
        "names_absent": math.log1p(len(names)),
        "numbers_absent": math.log1p(len(missing)),
        "number_conflict": strength[Kind.NUMBER] * agreement,
        "negation_conflict": strength[Kind.NEGATION] * agreement,
        "opposite_conflict": strength[Kind.OPPOSITE] * agreement,
        "order_conflict": strength[Kind.ORDER] * agreement,
        "name_conflict": max(strength[Kind.NAME], strength[Kind.NAME_IN_PLACE]) * agreement,
        "substitution": strength[Kind.SUBSTITUTION] * agreement,
        "parity": _parity(statement, best) * agreement,
        "length": math.log1p(sum(_unit(t) for t in statement.terms) + len(statement.numbers)),
        "context": math.log1p(len(index.sentences)),
        "speaker": float(statement.speaker),
        "unspaced": float(bool(_WIDE.search(text))),
    }
    return Examined(
        features,
        _most_similar(claim, best, found, windows, sources, similarities) if best else None,
        tuple(as_written(found, statement, text, *evidence)),
        agreement,
        _written(text, statement, absent),
        tuple(text[q.start : q.end].strip() for q in missing),
        _written(text, statement, names),
    )


def _without_joints(statement: Sentence, index: Index) -> Sentence:
    """The statement less the pairs of characters that only join two known words, as 持鸿 joins 支持 and 鸿蒙.

    Where words are not set apart, a new order of known words makes pairs that no context holds.
    """
    terms, places = statement.terms, statement.places
    known = [term in index.postings for term in terms]
    keep = [
        known[k]
        or not _WIDE.match(terms[k])
        or not (0 < k < len(terms) - 1 and known[k - 1] and known[k + 1] and places[k + 1] - places[k - 1] == 2)
        for k in range(len(terms))
    ]
    if all(keep):
        return statement
    kept = [k for k in range(len(terms)) if keep[k]]
    moved = {old: new for new, old in enumerate(kept)}
    return replace(
        statement,
        terms=tuple(terms[k] for k in kept),
        places=tuple(places[k] for k in kept),
        vocabulary=frozenset(terms[k] for k in kept),
        roles=tuple((role, moved[at]) for role, at in statement.roles if at in moved),
    )


def _best(claim: _Claim, windows: Sequence[Window], sources: Sequence[str]) -> tuple[Window | None, list[Conflict]]:
    """The window that supports the statement best: coverage, less what stands against it."""
    best: Window | None = None
    found: list[Conflict] = []
    highest = -math.inf
    for window in windows[:TRIED]:
        against = _against(claim, window, sources[window.source])
        value = window.coverage - CONFLICT_COST * min(sum(c.strength for c in against), 1.0)
        if value > highest + 1e-9:
            best, found, highest = window, against, value
    return best, found


def _against(claim: _Claim, window: Window, source: str) -> list[Conflict]:
    return [
        *conflicts(claim.statement, claim.text, window, source),
        *other_name(claim.names, window, claim.statement),
        *other_titled(claim.names, claim.statement, claim.text, window, source),
        *name_in_place(claim.unknown, claim.statement, claim.text, window, source),
    ]


def _most_similar(
    claim: _Claim,
    best: Window,
    found: Sequence[Conflict],
    windows: Sequence[Window],
    sources: Sequence[str],
    similarities: Sequence[float | None],
) -> Window:
    """Of the windows that hold as much as the best one and disagree in the same words, the most similar chunk's."""

    def similarity(window: Window) -> float:
        known = similarities[window.source] if window.source < len(similarities) else None
        return -math.inf if known is None else known

    chosen = best
    for window in windows if similarities else ():
        if similarity(window) <= similarity(chosen) or window.coverage < best.coverage - NEAR:
            continue
        if _against(claim, window, sources[window.source]) == list(found):
            chosen = window
    return chosen


def _agreement(window: Window, against: Sequence[Conflict], weights: Mapping[str, float], total: float) -> float:
    """Coverage of what is not itself in conflict: of «it costs 5 euros» against «it costs 9» all the rest agrees."""
    lost = sum(NUMBER_WEIGHT for c in against if c.kind is Kind.NUMBER)
    terms = {t for c in against for t in c.terms} - window.vocabulary
    lost += math.fsum(weights.get(term, 0.0) for term in terms)  # exact, so that the order of a set changes nothing
    return min(window.coverage * total / (total - lost), 1.0) if total - lost > 1e-6 else 0.0


def _written(text: str, statement: Sentence, terms: Sequence[str]) -> tuple[str, ...]:
    """Terms as the statement writes them; neighbouring pairs of characters grow together."""
    wanted = set(terms)
    words: list[str] = []
    end = -1
    for term, place in zip(statement.terms, statement.places, strict=True):
        if term not in wanted:
            continue
        if _WIDE.match(term):
            if place < end:
                words[-1] += text[end : place + len(term)]
            else:
                words.append(text[place : place + len(term)])
            end = place + len(term)
        else:
            found = WORD.match(text, place)
            words.append(found[0] if found else term)
    return tuple(dict.fromkeys(words))


def _unit(term: str) -> float:
    """Two neighbouring pairs of characters tell about as much as one word."""
    return 0.5 if _WIDE.match(term) else 1.0


def _words(words: frozenset[str], index: Index) -> float:
    """Plain overlap of everything as written, function words too, weighted by how rare a word is at large."""
    rarity = {word: index.rarity(word) for word in words}
    total = math.fsum(rarity.values())  # exact, so that the order of a set changes nothing
    return math.fsum(r for word, r in rarity.items() if word in index.words) / total if total else 0.0


def _pairs(statement: Sentence, index: Index, close: Container[tuple[str, str]]) -> float:
    """Share of neighbouring terms of the statement that stand within three terms of each other in one sentence."""
    terms = statement.terms
    if len(terms) < 2:
        return 1.0 if terms and terms[0] in index.postings else 0.0
    return sum(pair in close for pair in pairwise(terms)) / (len(terms) - 1)


def _parity(statement: Sentence, window: Window | None) -> float:
    """1 where exactly one side is negated an odd number of times."""
    if window is None:
        return 0.0
    return float((statement.negations % 2) != (sum(s.negations for s in window.sentences) % 2))
