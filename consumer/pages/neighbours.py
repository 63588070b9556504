"""Answers to hold one against: others of the same segment and time, and the most similar questions that went well.

Both come from the audited cases only: they are chosen by hash, so they show how the service usually answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from consumer.case_file import CaseFile
from consumer.case_filter import CaseFilter, case_key, case_time, folded
from consumer.case_parts import verdict_counts
from consumer.case_store import CaseStore
from consumer.pages.short_cases import few_at_a_time, shortened
from metrics.sketch import decode_sketch

AROUND_SECONDS = 3600.0
SHOWN = 5
COMPARED = 80
"""Audited cases before this one whose questions are compared."""
SOON_SECONDS = 600.0
SOON = 40
"""And so many of those that came soon after it."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """`similarity` of the two questions: cosine of their sketches, or shared words where there are none; None where it
    was not looked at."""

    key: str
    case: CaseFile
    similarity: float | None
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Neighbours:
    near: list[Neighbour]
    went_well: list[Neighbour]


def neighbours(store: CaseStore, case: CaseFile) -> Neighbours:
    """Of the audited cases of the same segment.

    Raises:
        CaseStoreError: Redis does not answer.
    """
    at, own = case_time(case), case_key(case)
    audited = CaseFilter(why=("audit",), segment=case.record.segment)
    keys = store.keys(replace(audited, until=at), COMPARED)
    keys += store.keys(replace(audited, since=at, until=at + SOON_SECONDS), SOON)
    others = [shortened(other) for other in few_at_a_time(store, keys) if case_key(other) != own]
    near = sorted(
        (o for o in others if abs(case_time(o) - at) <= AROUND_SECONDS),
        key=lambda o: abs(case_time(o) - at),
    )
    well = [other for other in others if went_well(other)]
    return Neighbours([Neighbour(case_key(o), o, None) for o in near[:SHOWN]], _most_similar(case, well)[:SHOWN])


def went_well(case: CaseFile) -> bool:
    """No flag, and every statement supported."""
    counts = verdict_counts(case)
    return not case.record.flags and not case.record.refusal and len(case.statements) == counts["supported"] > 0


def _most_similar(case: CaseFile, others: Sequence[CaseFile]) -> list[Neighbour]:
    found = []
    own, embedder = _sketch(case), case.record.versions.get("embedder")
    words = _pieces(case.question)
    for other in others:
        theirs = _sketch(other) if own is not None and other.record.versions.get("embedder") == embedder else None
        if own is not None and theirs is not None:
            found.append(Neighbour(case_key(other), other, float(own @ theirs)))
        else:
            shared = _pieces(other.question)
            either = len(words | shared)
            found.append(Neighbour(case_key(other), other, len(words & shared) / either if either else 0.0, True))
    return sorted(found, key=lambda neighbour: (neighbour.by_words, -(neighbour.similarity or 0.0)))


def _sketch(case: CaseFile) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
    """Of unit length."""
    encoded = case.record.sketch.get("question")
    if not encoded:
        return None
    try:
        sketch = decode_sketch(encoded)
    except (ValueError, TypeError):
        return None
    norm = float(np.linalg.norm(sketch))
    return sketch / np.float32(norm) if np.isfinite(norm) and norm > 0 else None


def _pieces(question: str | None) -> set[str]:
    """Words; pairs of characters where words have no blanks between them."""
    text = folded((question or "")[:2000])
    return {word for word in text.split() if word.isascii()} | {
        text[i : i + 2] for i in range(len(text) - 1) if not text[i].isascii() and not text[i + 1].isascii()
    }
