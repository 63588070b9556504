"""Scores of the same events, before and after a change: joined by id, the paired difference with its interval.

The interval is Student's (paired t): events answer for themselves, so their differences count as independent.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

from consumer.record import RecordRejected, ScoreRecord, decode_record

NOISE = 0.001
"""Batch order and padding move the last digits of a score; a smaller fall of the mean is never called one."""
WORST = 5


class ComparisonError(Exception):
    """The old scores cannot be compared with; one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class OldScore:
    """One line of the old file, as far as it is compared."""

    content_hash: str
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OldScores:
    """The old file. `definitions` counts, per metric, the lines of each definition, scored or not."""

    by_id: Mapping[str, OldScore]
    definitions: Mapping[str, Counter[str]]
    repeated: int
    """Lines whose id was there before; the first one counts."""
    unreadable: tuple[int, ...]
    """Line numbers (from 1) that hold no score record."""


@dataclass(frozen=True, slots=True)
class Regression:
    """One event whose score fell."""

    id: str
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class Difference:
    """New minus old over the events that have both. `low` and `high` are None below two pairs."""

    metric: str
    pairs: int
    old: float
    new: float
    difference: float
    low: float | None
    high: float | None
    lost: int
    """Events with a score before and none now: a mean can rise because bad answers dropped out of it."""
    gained: int
    worst: tuple[Regression, ...]

    @property
    def fell(self) -> bool:
        """The whole 95 % interval lies below 0, and the fall is more than numerical noise."""
        return self.high is not None and self.high < 0 and self.difference < -NOISE


@dataclass(frozen=True, slots=True)
class Joined:
    """How the two files met."""

    both: int
    changed: int
    """In both, with another question, context or answer."""
    only_new: int
    only_old: int
    repeated: int
    """New lines whose id was there before; the first one counts."""


def read_old(lines: Iterable[tuple[int, bytes]]) -> OldScores:
    """Reads the output of an earlier `score-file` (numbered lines, blank ones are skipped).

    Raises:
        ComparisonError: not one line is a score record.
    """
    by_id: dict[str, OldScore] = {}
    definitions: dict[str, Counter[str]] = {}
    repeated = 0
    unreadable: list[int] = []
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = decode_record(line)
        except RecordRejected:
            unreadable.append(number)
            continue
        if record.id in by_id:
            repeated += 1
            continue
        by_id[record.id] = OldScore(record.content_hash, {name: s.value for name, s in record.scores.items()})
        for metric, definition in record.definitions.items():
            definitions.setdefault(metric, Counter())[definition] += 1
    if not by_id:
        raise ComparisonError("holds no score record; give the --out file of an earlier run")
    return OldScores(by_id, definitions, repeated, tuple(unreadable))


def comparable(old: OldScores, definitions: Mapping[str, str]) -> tuple[str, ...]:
    """The metrics of `definitions` that the old file has under the same definition throughout.

    Raises:
        ComparisonError: a metric has another definition there, or no metric is in both.
    """
    found = []
    for metric, definition in definitions.items():
        there = old.definitions.get(metric)
        if there is None:
            continue
        if set(there) != {definition}:
            raise ComparisonError(
                f"{metric} was scored under definition {', '.join(sorted(there))} and is {definition} now (another "
                "model, aggregation or formula): the difference would say nothing about the answers. Score both "
                "files with the same settings, or leave the metric out with --metrics"
            )
        found.append(metric)
    if not found:
        raise ComparisonError(f"has none of the metrics {', '.join(definitions)}; name others with --metrics")
    return tuple(found)


@dataclass(slots=True)
class _Pairs:
    old: array[float] = field(default_factory=lambda: array("d"))
    new: array[float] = field(default_factory=lambda: array("d"))
    worst: list[tuple[float, str, float, float]] = field(default_factory=list)
    lost: int = 0
    gained: int = 0


class Comparison:
    """Takes new records one at a time; asks for 16 bytes a pair."""

    def __init__(self, old: OldScores, metrics: Iterable[str]) -> None:
        self._old = old
        self._pairs = {metric: _Pairs() for metric in metrics}
        self._met: set[str] = set()
        self._changed = self._only_new = self._repeated = 0

    def add(self, record: ScoreRecord) -> None:
        before = self._old.by_id.get(record.id)
        if before is None:
            self._only_new += 1
            return
        if record.id in self._met:
            self._repeated += 1
            return
        self._met.add(record.id)
        self._changed += before.content_hash != record.content_hash
        for metric, pairs in self._pairs.items():
            old, new = before.scores.get(metric), record.scores.get(metric)
            if old is not None and new is not None:
                pairs.old.append(old)
                pairs.new.append(new.value)
                if new.value < old:
                    keep = heapq.heappush if len(pairs.worst) < WORST else heapq.heappushpop
                    keep(pairs.worst, (old - new.value, record.id, old, new.value))
            elif old is not None:
                pairs.lost += 1
            elif new is not None:
                pairs.gained += 1

    def joined(self) -> Joined:
        both = len(self._met)
        return Joined(both, self._changed, self._only_new, len(self._old.by_id) - both, self._repeated)

    def differences(self) -> list[Difference]:
        """One for each metric, in the order given."""
        return [_difference(metric, pairs) for metric, pairs in self._pairs.items()]


def _difference(metric: str, pairs: _Pairs) -> Difference:
    n = len(pairs.old)
    worst = tuple(Regression(id, old, new) for _, id, old, new in sorted(pairs.worst, reverse=True))
    if n == 0:
        return Difference(metric, 0, 0.0, 0.0, 0.0, None, None, pairs.lost, pairs.gained, worst)
    changes = [new - old for old, new in zip(pairs.old, pairs.new, strict=True)]
    mean = math.fsum(changes) / n
    low = high = None
    if n > 1:
        variance = math.fsum((c - mean) ** 2 for c in changes) / (n - 1)
        half = student_quantile(0.975, n - 1) * math.sqrt(variance / n)
        low, high = mean - half, mean + half
    old_mean, new_mean = math.fsum(pairs.old) / n, math.fsum(pairs.new) / n
    return Difference(metric, n, old_mean, new_mean, mean, low, high, pairs.lost, pairs.gained, worst)


def student_quantile(p: float, degrees: int) -> float:
    """The quantile of Student's t, for p in (0.5, 1).

    Exact for 1 and 2 degrees of freedom; above, the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5), within
    0.004 at p = 0.975.
    """
    if degrees == 1:
        return math.tan(math.pi * (p - 0.5))
    if degrees == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = NormalDist().inv_cdf(p)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))
