"""From the score records of a validated set to a baseline: distributions, sketches and thresholds, by segment."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from consumer.record import ScoreRecord
from metrics.answer import ALL, Segment
from metrics.baseline import SKETCHES_KEPT, Baseline, BaselineThreshold, Part, Sketches, distribution_of, specificity
from metrics.flags import FLAGGED_METRICS
from metrics.ranges import range_of
from metrics.threshold_choice import FOLDS, Answers, NotChosen, Rule, choose

FEWEST_KEPT = 20
"""A segment with fewer scores gets no distribution and no sketches of its own."""
PARTS: tuple[Part, ...] = ("question", "context")


@dataclass(frozen=True, slots=True)
class Plan:
    """How thresholds are chosen. `rule` needs bad answers unless it is `false_alarms`; `alarms` is the share of good
    answers that may be flagged by metrics that the rule is not possible for; `fewest` good answers give a segment a
    threshold of its own; `bad_share` is what precision is computed for, None: the share in the files."""

    rule: Rule
    alarms: float
    fewest: int
    bad_share: float | None


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a metric has no threshold in a segment."""

    metric: str
    segment: Segment
    why: str


class _Row(NamedTuple):
    value: float
    fold: int
    event: int


@dataclass(slots=True)
class ScoredSet:
    """Takes the records of one file. A record that was there before (same id and content) counts once."""

    segment_keys: tuple[str, ...]
    events: int = 0
    repeated: int = 0
    unscored: dict[str, Counter[str]] = field(default_factory=dict)
    content: set[str] = field(default_factory=set)
    _known: set[tuple[str, str]] = field(default_factory=set)
    _scores: dict[tuple[str, Segment], list[_Row]] = field(default_factory=dict)
    _sketches: dict[tuple[Part, Segment], list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, record: ScoreRecord) -> None:
        identity = record.id, record.content_hash
        if identity in self._known:
            self.repeated += 1
            return
        self._known.add(identity)
        self.content.add(record.content_hash)
        self.events += 1
        digest = hashlib.sha256(f"{record.id}\0{record.content_hash}".encode("utf-8", "surrogatepass")).hexdigest()
        fold = int(digest[:8], 16) % FOLDS
        own = tuple(record.segment[key] for key in self.segment_keys)
        for segment in levels(own):
            for metric, score in record.scores.items():
                self._scores.setdefault((metric, segment), []).append(_Row(score.value, fold, self.events))
            for part in PARTS:
                if part in record.sketch:
                    self._sketches.setdefault((part, segment), []).append((digest, record.sketch[part]))
        for metric, missing in record.unscored.items():
            self.unscored.setdefault(metric, Counter())[missing.reason] += 1

    def segments(self) -> list[Segment]:
        """Every level that has a score, the whole set first."""
        return sorted({segment for _, segment in self._scores}, key=lambda s: (specificity(s), s))

    def values(self, metric: str, segment: Segment) -> list[float]:
        return [row.value for row in self._scores.get((metric, segment), ())]

    def answers(self, metric: str, segment: Segment) -> Answers:
        rows = self._scores.get((metric, segment), ())
        return Answers(np.array([r.value for r in rows], np.float64), np.array([r.fold for r in rows], np.int64))

    def members(self, metric: str, segment: Segment) -> tuple[int, ...]:
        """Which events the scores belong to, by number."""
        return tuple(row.event for row in self._scores.get((metric, segment), ()))

    def sketches(self, embedder: str) -> Iterator[Sketches]:
        """At most 512 a part and segment: those with the smallest hashes."""
        for (part, segment), rows in self._sketches.items():
            if len(rows) >= FEWEST_KEPT or _is_whole(segment):
                sample = tuple(encoded for _, encoded in sorted(rows)[:SKETCHES_KEPT])
                yield Sketches(part, embedder, segment, len(rows), sample)


def levels(segment: Segment) -> Iterator[Segment]:
    """The segment, and every one that leaves some of its values open: `("hr", "zh")`, `("hr", "all")`, ..."""
    return itertools.product(*((value, ALL) for value in segment))


def build_baseline(
    good: ScoredSet,
    bad: ScoredSet,
    plan: Plan,
    *,
    definitions: Mapping[str, str],
    versions: Mapping[str, str],
    created: float,
    source: Mapping[str, str],
) -> tuple[Baseline, list[Missing]]:
    """The baseline of what was scored, and where a threshold could not be set, and why.

    A segment that holds the same answers as a wider one adds nothing and is left out.
    """
    distributions, thresholds, missing = [], [], []
    for metric, definition in definitions.items():
        told: set[tuple[int, ...]] = set()
        for segment in good.segments():
            values = good.values(metric, segment)
            same = good.members(metric, segment)
            if not values or same in told or (len(values) < FEWEST_KEPT and not _is_whole(segment)):
                continue
            told.add(same)
            distributions.append(distribution_of(metric, definition, segment, values))
            if metric not in FLAGGED_METRICS:
                continue
            if len(values) < plan.fewest and not _is_whole(segment):
                continue
            chosen = choose(
                good.answers(metric, segment), bad.answers(metric, segment), plan.rule, plan.alarms, plan.bad_share,
                range_of(metric).high,
            )  # fmt: skip
            if isinstance(chosen, NotChosen):
                missing.append(Missing(metric, segment, chosen.why))
                continue
            rule = chosen.rule
            thresholds.append(
                BaselineThreshold(metric, definition, segment, chosen.value, rule.method, rule.target, chosen.operating)
            )
        if not good.values(metric, whole(good.segment_keys)) and metric in FLAGGED_METRICS:
            reasons = ", ".join(f"{reason} {n}" for reason, n in good.unscored.get(metric, Counter()).most_common())
            missing.append(Missing(metric, whole(good.segment_keys), f"no good answer has a score ({reasons})"))
    baseline = Baseline(
        created=created,
        segment_keys=good.segment_keys,
        definitions=definitions,
        versions=versions,
        distributions=tuple(distributions),
        sketches=tuple(good.sketches(versions.get("embedder", ""))),
        thresholds=tuple(thresholds),
        source=source,
    )
    return baseline, missing


def whole(segment_keys: tuple[str, ...]) -> Segment:
    """The segment that holds everything."""
    return tuple(ALL for _ in segment_keys)


def _is_whole(segment: Segment) -> bool:
    return all(value == ALL for value in segment)
