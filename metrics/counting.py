"""Counters and histograms over all answers counted since the process began, per segment.

They are plain numbers here, not objects of the Prometheus client: a record touches about twenty of them, and several
thousand records arrive each second. `exposition.py` writes them out.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metrics.answer import Answer, Key, Segment, flagged_weight
from metrics.ranges import range_of

VERDICTS = ("supported", "contradicted", "not_found")
STATEMENT_BUCKETS = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)
OUTCOMES = ("counted", "duplicate", "conflict", "late", "future", "other_run", "other_version", "undecodable")

MAX_FLAGS = 40
MAX_FAULTS = 20
MAX_VALUES = 200
"""Values of a contrast dimension that are remembered per segment, the latest ones."""

EXEMPLAR_CHARACTERS = 64

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_PLAIN = re.compile(rf"[!-~]{{1,{EXEMPLAR_CHARACTERS}}}")


Definitions = Mapping[str, Collection[str]]
"""By metric: the definitions that are kept."""


class Example(NamedTuple):
    """An exemplar: which answer, its value, and when (seconds since the epoch)."""

    label: str
    name: str
    value: float
    at: float


@dataclass(slots=True)
class Tally:
    """One histogram (not cumulative here; one more count than bounds) with Σ s/p and Σ 1/p beside it."""

    bounds: tuple[float, ...]
    counts: list[int]
    examples: list[Example | None]
    sum: float = 0.0
    weighted_sum: float = 0.0
    weight: float = 0.0

    def observe(self, value: float) -> int:
        bucket = bisect_left(self.bounds, value)
        self.counts[bucket] += 1
        self.sum += value
        return bucket


def tally(bounds: tuple[float, ...]) -> Tally:
    return Tally(bounds, [0] * (len(bounds) + 1), [None] * (len(bounds) + 1))


@dataclass(slots=True)
class SegmentCounts:
    """What is counted once per answer. Weights are 1 / inclusion probability: of the answer, and for a flagged one of
    the score that flags it."""

    answers_weight: float = 0.0
    flagged_weight: float = 0.0
    refusals: int = 0
    evasive: int = 0
    conflicts: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    statements: Tally = field(default_factory=lambda: tally(STATEMENT_BUCKETS))
    flagged: dict[tuple[str, str], tuple[int, Example]] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    last_at: float = 0.0


class Counting:
    """All counters of one monitor. Not thread-safe: the caller holds one lock around every call."""

    def __init__(self, segments: Sequence[Segment], dimensions: Sequence[str]) -> None:
        """`dimensions`: the contrast labels (model, kb_version, ...) whose new values are counted."""
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.overflow = 0
        self.nonfinite = 0
        self.scores: dict[Key, Tally] = {}
        self.segments = {s: SegmentCounts(changes=dict.fromkeys(dimensions, 0)) for s in segments}
        self._dimensions = tuple(dimensions)
        self._values: dict[Segment, dict[str, dict[str, None]]] = {s: {d: {} for d in dimensions} for s in segments}
        self._flags: set[str] = set()
        self._faults: set[str] = set()

    def add(self, answer: Answer, segment: Segment, definitions: Definitions, at: float) -> None:
        """Count one answer of a known segment; `definitions` are those that the windows admit."""
        counts = self.segments[segment]
        weight = 1.0 / answer.probability
        counts.answers_weight += weight
        counts.last_at = max(counts.last_at, at)
        if answer.refusal:
            counts.refusals += 1
        if answer.evasive:
            counts.evasive += 1
        counts.conflicts += answer.conflicts
        self._add_scores(answer, segment, definitions, at)
        if answer.statements:
            self._add_statements(answer.statements, counts)
        if answer.flags:
            counts.flagged_weight += flagged_weight(answer)
            self._add_flags(answer, counts, at)
        for dimension in self._dimensions:
            value = answer.labels.get(dimension)
            if value is not None and self._is_new(segment, dimension, value):
                counts.changes[dimension] += 1

    def note(self, answer: Answer, segment: Segment, at: float) -> None:
        """An answer that was counted by an earlier process: learn its label values, advance nothing."""
        counts = self.segments[segment]
        if at > counts.last_at:
            counts.last_at = at
        values = self._values[segment]
        for dimension, value in answer.labels.items():
            known = values.get(dimension)
            if known is not None and value not in known:
                self._is_new(segment, dimension, value)

    def keep(self, definitions: Definitions) -> None:
        """Have series for these definitions, from 0 on, and forget those of all others."""
        wanted = {(metric, definition) for metric, known in definitions.items() for definition in known}
        for key in [key for key in self.scores if key[1:] not in wanted]:
            del self.scores[key]
        for metric, definition in wanted:
            self._open(metric, definition)

    def _add_scores(self, answer: Answer, segment: Segment, definitions: Definitions, at: float) -> None:
        label, name = "", ""
        for metric, score in answer.scores.items():
            definition = answer.definitions.get(metric, "")
            range_ = range_of(metric)
            if definition not in definitions.get(metric, ()) or not range_.holds(score.value):
                continue
            key = (segment, metric, definition)
            if key not in self.scores:
                self._open(metric, definition)
            entry = self.scores[key]
            value = range_.counted(score.value)
            bucket = entry.observe(value)
            weight = 1.0 / score.probability
            entry.weighted_sum += value * weight
            entry.weight += weight
            if not label:
                label, name = exemplar_of(answer)
            entry.examples[bucket] = Example(label, name, value, at)

    def _open(self, metric: str, definition: str) -> None:
        """Every known segment begins at 0, so that a rate sees the first increase."""
        bounds = range_of(metric).buckets
        for segment in self.segments:
            if (segment, metric, definition) not in self.scores:
                self.scores[segment, metric, definition] = tally(bounds)

    def _add_statements(self, statements: Mapping[str, int], counts: SegmentCounts) -> None:
        total = 0
        for verdict in VERDICTS:
            number = statements.get(verdict, 0)
            counts.verdicts[verdict] += number
            total += number
        counts.statements.observe(float(total))

    def _add_flags(self, answer: Answer, counts: SegmentCounts, at: float) -> None:
        fault = self._capped(answer.fault, self._faults, MAX_FAULTS)
        label, name = exemplar_of(answer)
        for flag in answer.flags:
            key = (self._capped(flag, self._flags, MAX_FLAGS), fault)
            number = counts.flagged[key][0] if key in counts.flagged else 0
            counts.flagged[key] = (number + 1, Example(label, name, 1.0, at))

    def _capped(self, name: str, known: set[str], most: int) -> str:
        if name in known:
            return name
        if len(known) < most and _NAME.fullmatch(name):
            known.add(name)
            return name
        self.overflow += 1
        return "other"

    def _is_new(self, segment: Segment, dimension: str, value: str) -> bool:
        """True for a value not seen before in this segment; the first value ever is where it starts, not a change."""
        values = self._values[segment][dimension]
        if value in values:
            return False
        if len(values) >= MAX_VALUES:
            del values[next(iter(values))]
        values[value] = None
        return len(values) > 1


def exemplar_of(answer: Answer) -> tuple[str, str]:
    """Label and value of the exemplar: the trace id, or else the event id; hashed where it is long or not plain."""
    label, name = ("trace_id", answer.trace_id) if answer.trace_id else ("event_id", answer.id)
    if _PLAIN.fullmatch(name):
        return label, name
    return label, hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
