"""From the score log to a contrast: which labels explain how one metric moved between two spans of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from consumer.score_topic import Logged, Range
from metrics.answer import OTHER
from metrics.contrast import Contrast, contrast
from metrics.contrast_sums import SpanSums
from metrics.dedup import Dedup, Seen
from metrics.ranges import range_of

MAX_DEFINITIONS = 8


class NothingToContrast(Exception):
    """There is not a score in both spans; one line that says what there is."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `segment`: values of segment keys, all of which must hold; `definition` None: the one that most of
    the traffic of `after` has, of those that are in both."""

    metric: str
    before: Range
    after: Range
    segment: Mapping[str, str] = field(default_factory=dict)
    definition: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A contrast, the definition of the scores, and the others that were there. `repeated`: records that were left out
    because the same event had been read. Times: of the first and last score, in seconds since the epoch."""

    question: Question
    definition: str
    others: tuple[str, ...]
    contrast: Contrast
    repeated: int
    before: Range
    after: Range


def find(records: Iterable[Logged], question: Question) -> Finding:
    """Reads to the end; keeps sums, and ids as far as `Dedup` does. Only records of run `live` count.

    Raises:
        NothingToContrast: no score of that metric in one of the spans, or none under one definition in both.
    """
    range_ = range_of(question.metric)
    dedup = Dedup(math.inf)
    sums: dict[str, tuple[SpanSums, SpanSums]] = {}
    metrics: dict[str, None] = {}
    repeated = 0
    for logged in records:
        record = logged.record
        place = 0 if question.before.holds(logged.at) else 1 if question.after.holds(logged.at) else None
        if place is None or record.run != "live":
            continue
        if any(record.segment.get(key, OTHER) != value for key, value in question.segment.items()):
            continue
        if dedup.see(record.id, record.content_hash, logged.at) is Seen.DUPLICATE:
            repeated += 1
            continue
        metrics.update(dict.fromkeys(record.scores))
        score = record.scores.get(question.metric)
        definition = record.definitions.get(question.metric, "")
        if score is None or not range_.holds(score.value):
            continue
        if definition not in sums:
            if len(sums) >= MAX_DEFINITIONS:
                continue
            sums[definition] = SpanSums(), SpanSums()
        labels = {**record.segment, **record.labels}
        sums[definition][place].add(labels, score.value, 1.0 / score.probability, logged.at)
    definition = _chosen(sums, question, tuple(metrics))
    before, after = sums[definition]
    return Finding(
        question,
        definition,
        tuple(name for name in sums if name != definition),
        contrast(before, after, range_.low, range_.high),
        repeated,
        _seen(before),
        _seen(after),
    )


def _chosen(sums: Mapping[str, tuple[SpanSums, SpanSums]], question: Question, metrics: tuple[str, ...]) -> str:
    both = [name for name, (before, after) in sums.items() if before.n and after.n]
    if question.definition is not None:
        both = [name for name in both if name == question.definition]
    if both:
        return max(both, key=lambda name: sums[name][1].moments.w)
    counts = [sum(pair[place].n for pair in sums.values()) for place in (0, 1)]
    if min(counts) > 0:
        under = "; ".join(f"{name or '(none)'}: {b.n} before, {a.n} after" for name, (b, a) in sums.items())
        raise NothingToContrast(
            f"no definition of {question.metric} has scores in both spans ({under}): scores of another model, prompt "
            "or formula cannot be compared"
        )
    there = f"; scored metrics: {', '.join(sorted(metrics))}" if metrics else ""
    raise NothingToContrast(
        f"{question.metric} has {counts[0]} scores before and {counts[1]} after (live run, that segment){there}"
    )


def _seen(sums: SpanSums) -> Range:
    assert sums.first is not None
    assert sums.last is not None
    return Range(sums.first, sums.last)
