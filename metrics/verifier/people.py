"""Claims that people judged: statements of the answers of the labelled sets that may be trained on, each with the part
of its contexts that it is read against."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from metrics.judge import Statement
from metrics.lexical import corpus
from metrics.lexical.judge import LexicalJudge, Studied
from metrics.verifier import sources
from metrics.verifier.judge import statement_of
from metrics.verifier.made import MOST_CLAIMS
from metrics.verifier.reader import in_the_light_of
from metrics.verifier.scored import request_of
from metrics.verifier.sources import CONTRADICTED, SUPPORTED, UNSUPPORTED, Claim, Passage
from metrics.verifier.windows import Lengths, Placed, Span, Window, coverages, placed_windows, windows_of

REPORTED = tuple(name for name in sources.MEASURED if name not in corpus.LABELLED)
"""Sets that are only ever measured on: what shares a sentence with one of them is left out."""
CONFLICT = "Conflict"
"""Part of the name of a kind of span that is contradicted; of the others only «unsupported» is known."""
WINDOWS = 2
"""Windows that a claim is read against, as one premise: its evidence lies in two far more often than in one."""

MOST_SUPPORTED, LEAST_SUPPORTED = 4, 300
"""Supported claims of a set: at most so many for each unsupported one, but so many in any case."""


def passages(data: Path, lengths: Lengths, left_out: Callable[[str], bool] = lambda group: False) -> list[Passage]:
    """Premises with the claims about them. `lengths`: tokens of each text.

    Rows of groups that are `left_out` are not read, nor is a premise that shares a sentence with their contexts.
    """
    judge = LexicalJudge()
    measured = sources.keys_of(_measured(data, left_out))
    found: list[Passage] = []

    def cut(text: str, sentences: tuple[Span, ...]) -> list[Window]:
        return windows_of(text, sentences, lengths)

    for name in corpus.LABELLED:
        marked = {str(raw["id"]): raw.get("spans") or () for raw in sources.labelled(data, name)}
        rows = [row for row in corpus.labelled(data, name) if not left_out(row.group)]
        asked = [(row, request) for row in rows if (request := request_of(row)) is not None]
        right: dict[str, set[str]] = defaultdict(set)
        for row, request in asked:
            if row.label:
                right[row.group].update(_key(s.text) for s in request.statements)
        about: dict[tuple[str, str], dict[str, Claim]] = defaultdict(dict)
        for row, request in asked:
            studied = judge.study(request)
            windows = placed_windows(studied.sources, studied.passages, cut)
            judged = _judged(row.label, request.statements, marked[row.id], right[row.group])
            for statement, label, spans in judged:
                premise = _premise(statement.text, studied, windows)
                text = in_the_light_of(request.question, statement.text)
                shift = len(text) - len(statement.text)
                moved = None if spans is None else tuple((a + shift, b + shift) for a, b in spans)
                about[row.group, premise].setdefault(text, Claim(text, label, moved))
        own = {k: list(c.values()) for k, c in about.items() if measured.isdisjoint(sources.keys_of([k[1]]))}
        for (group, premise), claims in _evened(own, random.Random(f"people {name}")).items():
            cuts = range(0, len(claims), MOST_CLAIMS)
            found += [Passage(premise, tuple(claims[at : at + MOST_CLAIMS]), name, group) for at in cuts]
    return found


def _evened(about: Mapping[tuple[str, str], list[Claim]], rng: random.Random) -> dict[tuple[str, str], list[Claim]]:
    """All that is unsupported, and of the supported so much that it does not swamp the rest."""
    right = [(at, c) for at, own in about.items() for c in own if c.label == SUPPORTED]
    wrong = sum(map(len, about.values())) - len(right)
    rng.shuffle(right)
    spare = {(at, c.text) for at, c in right[max(LEAST_SUPPORTED, MOST_SUPPORTED * wrong) :]}
    kept = {at: [c for c in own if (at, c.text) not in spare] for at, own in about.items()}
    return {at: own for at, own in kept.items() if own}


def _measured(data: Path, left_out: Callable[[str], bool]) -> Iterator[str]:
    for name in REPORTED:
        yield from corpus.texts(data, name)
    for name in corpus.LABELLED:
        for row in corpus.labelled(data, name):
            if left_out(row.group):
                yield from row.contexts


Judged = tuple[Statement, int, tuple[sources.Span, ...] | None]


def _judged(
    label: int, statements: Sequence[Statement], spans: Sequence[Mapping[str, Any]], right: set[str]
) -> Iterator[Judged]:
    """The statements of an answer whose label is known, with the spans of what is unsupported in them.

    Of an answer that is not faithful: by its spans, if it has some; else what another answer about the same says, which
    is faithful, is supported, and what is left is not, if it is one statement alone.
    """
    if label:
        yield from ((s, SUPPORTED, ()) for s in statements)
        return
    if spans:
        for s in statements:
            own = [x for x in spans if x["start"] < s.end and x["end"] > s.start]
            plain = len(s.text) == s.end - s.start
            cut = tuple((max(x["start"] - s.start, 0), min(x["end"], s.end) - s.start) for x in own) if plain else None
            conflict = any(CONFLICT in str(x.get("type")) for x in own)
            yield s, (CONTRADICTED if conflict else UNSUPPORTED) if own else SUPPORTED, cut
        return
    left = [s for s in statements if _key(s.text) not in right]
    if len(statements) > 1:
        yield from ((s, SUPPORTED, ()) for s in statements if _key(s.text) in right)
    if len(left) == 1:
        yield left[0], UNSUPPORTED, None


def _key(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _premise(statement: str, studied: Studied, windows: Sequence[Placed]) -> str:
    """The windows that hold most of the statement, in the order of the contexts; overlapping ones as one stretch."""
    covered = coverages(statement_of(statement), studied.index, windows)
    best = sorted(range(len(windows)), key=lambda k: (-covered[k], k))[:WINDOWS]
    parts: list[str] = []
    last: Placed | None = None
    for placed in (windows[k] for k in sorted(best)):
        start = placed.window.start
        if last is not None and last.source == placed.source:
            start = max(start, last.window.end)
        parts.append(studied.sources[placed.source][start : placed.window.end])
        last = placed
    return " ".join(" ".join(parts).split())
