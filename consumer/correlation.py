"""Agreement of every metric with human ratings, by segment: what `groundwatch correlate` computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from consumer.calibrate import levels, whole
from metrics.agreement import (
    Bin,
    Estimate,
    Floats,
    Integers,
    Mask,
    Statistic,
    answers_needed,
    auroc,
    balanced_accuracy,
    disagreements,
    estimate,
    kendall,
    ranks,
    reliability,
    resampled,
    spearman,
)
from metrics.answer import Segment
from metrics.baseline import specificity

FEWEST = 30
"""Below so many rated answers (or independent groups of them) nothing is concluded."""
FEWEST_OF_A_KIND = 10
"""Below so many good or so many bad ones nothing is concluded about telling them apart."""


@dataclass(frozen=True, slots=True)
class Row:
    """One rated answer that was scored. `scores` and `thresholds` by metric; `text` for people to read."""

    id: str
    segment: Segment
    group: str
    rating: float
    scores: Mapping[str, float]
    thresholds: Mapping[str, float]
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """One metric in one segment. Statistics are None where they are not defined.

    `good`: how many of the n answers are rated good (`rating >= good_from`). `threshold` is in force for that segment;
    None where several are, or none. `doubts`: why nothing, or not everything, can be concluded.
    """

    metric: str
    segment: Segment
    n: int
    groups: int
    good: int
    spearman: Estimate | None
    kendall: Estimate | None
    auroc: Estimate | None
    balanced_accuracy: Estimate | None
    threshold: float | None
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer that people and the metric place differently. Places are shares of the answers, from the lowest up."""

    metric: str
    row: Row
    score: float
    higher: str
    """`metric` or `people`: who thinks better of the answer."""


def good_from(ratings: Floats) -> float:
    """Where good begins unless the caller says: half-way between the lowest and the highest rating given."""
    return (float(ratings.min()) + float(ratings.max())) / 2.0


def agreements(
    rows: Sequence[Row], metrics: Sequence[str], keys: tuple[str, ...], cut: float, resamples: int
) -> Iterator[Agreement]:
    """By metric: the whole file first, then every segment that holds other answers. Good is rated at or above `cut`."""
    for metric in metrics:
        scored = [row for row in rows if metric in row.scores]
        members: dict[Segment, list[Row]] = {whole(keys): []}
        for row in scored:
            for segment in levels(row.segment):
                members.setdefault(segment, []).append(row)
        told: set[tuple[str, ...]] = set()
        for segment in sorted(members, key=lambda s: (specificity(s), s)):
            same = tuple(row.id for row in members[segment])
            if same not in told:
                told.add(same)
                yield _agreement(metric, segment, members[segment], cut, resamples)


def _agreement(metric: str, segment: Segment, rows: Sequence[Row], cut: float, resamples: int) -> Agreement:
    scores, ratings, good = columns(rows, metric, cut)
    groups = [row.group for row in rows]
    thresholds = {row.thresholds.get(metric) for row in rows}
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    statistics: dict[str, Statistic] = {
        "spearman": lambda at: spearman(scores[at], ratings[at]),
        "kendall": lambda at: kendall(scores[at], ratings[at]),
        "auroc": lambda at: auroc(scores[at], good[at]),
    }
    if threshold is not None:
        statistics["balanced_accuracy"] = lambda at: balanced_accuracy(scores[at], good[at], threshold)
    everything: Integers = np.arange(len(rows))
    values = {name: statistic(everything) if len(rows) > 1 else None for name, statistic in statistics.items()}
    defined = {name: statistic for name, statistic in statistics.items() if values[name] is not None}
    drawn = resampled(defined, groups, resamples)
    found = {name: estimate(value, drawn[name]) for name, value in values.items() if value is not None}
    rank, told = found.get("spearman"), found.get("auroc")
    doubts = tuple(_doubts(len(rows), len(set(groups)), int(good.sum()), rank, told))
    return Agreement(
        metric, segment, len(rows), len(set(groups)), int(good.sum()), rank, found.get("kendall"), told,
        found.get("balanced_accuracy"), threshold, doubts,
    )  # fmt: skip


def columns(rows: Sequence[Row], metric: str, cut: float) -> tuple[Floats, Floats, Mask]:
    """(scores, ratings, which are good) of rows that all have the metric."""
    ratings = np.array([row.rating for row in rows], np.float64)
    return np.array([row.scores[metric] for row in rows], np.float64), ratings, ratings >= cut


def _doubts(n: int, groups: int, good: int, rank: Estimate | None, told: Estimate | None) -> Iterator[str]:
    if min(n, groups) < FEWEST:
        what = f"{n} answers" if groups == n else f"{n} answers in {groups} groups"
        yield f"{what} are too few to conclude anything (at least {FEWEST})"
        return
    if rank is None:
        yield "scores or ratings are all equal: there is nothing to correlate"
        return
    fewer = min(good, n - good)
    if fewer < FEWEST_OF_A_KIND:
        kind = "good" if good < n - good else "bad"
        yield f"{fewer} {kind} answers are too few to conclude how well it tells good from bad (at least 10)"
    if rank.low is not None and rank.high is not None and rank.low <= 0.0 <= rank.high:
        yield f"not told from no agreement at all; ± 0.1 would take some {answers_needed(rank.value)} answers"
    elif rank.low is not None and rank.high is not None and rank.high - rank.low > 0.3:
        yield f"the interval is wide; ± 0.1 would take some {answers_needed(rank.value)} answers"
    if told is not None and told.high is not None and told.high < 0.5:
        yield "it ranks bad answers above good ones: is a higher rating better?"


def diagrams(rows: Sequence[Row], metrics: Sequence[str], cut: float) -> dict[str, list[Bin]]:
    """By metric: the reliability diagram over the whole file."""
    found = {}
    for metric in metrics:
        scored = [row for row in rows if metric in row.scores]
        if scored:
            scores, _, good = columns(scored, metric, cut)
            found[metric] = reliability(scores, good)
    return found


def strongest(rows: Sequence[Row], metrics: Sequence[str], most: int) -> Iterator[Disagreement]:
    """By metric, over the whole file: the answers that people and the metric place most differently."""
    for metric in metrics:
        scored = [row for row in rows if metric in row.scores]
        if len(scored) < 2:
            continue
        scores, ratings, _ = columns(scored, metric, 0.0)
        by_score, by_rating = ranks(scores), ranks(ratings)
        for at in disagreements(scores, ratings, most):
            higher = "metric" if by_score[at] > by_rating[at] else "people"
            yield Disagreement(metric, scored[at], float(scores[at]), higher)
