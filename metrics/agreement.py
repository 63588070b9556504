"""How far scores agree with what people said: rank correlation, discrimination, accuracy at a threshold, each with an
interval by bootstrap over groups.

A rating is a number, higher is better; a score is a metric's value. Answers to the same question are not independent,
so whole groups are drawn (Davison & Hinkley, Bootstrap Methods, 1997, section 3.8), and intervals are percentiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.flags import MARGIN
from metrics.interval import Z95, Moments, score_interval

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Statistic = Callable[[Integers], float | None]
"""Of the rows with these indices (repeated as often as they were drawn); None where it is not defined."""

SEED = 20261130
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95 % interval; `low` and `high` are None where too few resamples gave a value."""

    value: float
    low: float | None
    high: float | None

    def above(self, bound: float) -> bool:
        """The whole interval lies above `bound`."""
        return self.low is not None and self.low > bound


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose scores lie in [low, high], and the share of good ones among them with its 95 % interval."""

    low: float
    high: float
    n: int
    mean_score: float
    good: float
    good_low: float
    good_high: float


def ranks(values: Floats) -> Floats:
    """Ranks from 1 to n; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2.0
    return np.asarray(middle[inverse], np.float64)


def spearman(scores: Floats, ratings: Floats) -> float | None:
    """Spearman's rank correlation, in [-1, 1]; None where either side is constant."""
    return _pearson(ranks(scores), ranks(ratings)) if len(scores) > 1 else None


def kendall(scores: Floats, ratings: Floats) -> float | None:
    """Kendall's tau-b (Biometrika 33, 1945), in [-1, 1]; None where either side is constant. O(n log² n)."""
    n = len(scores)
    _, x, x_ties = np.unique(scores, return_inverse=True, return_counts=True)
    _, y, y_ties = np.unique(ratings, return_inverse=True, return_counts=True)
    _, both = np.unique(x.astype(np.int64) * n + y, return_counts=True)
    pairs = n * (n - 1) / 2.0
    in_x, in_y, in_both = (float((t * (t - 1) / 2.0).sum()) for t in (x_ties, y_ties, both))
    if pairs - in_x <= 0.0 or pairs - in_y <= 0.0:
        return None
    discordant = _inversions(y[np.lexsort((y, x))].astype(np.int64))
    comparable = pairs - in_x - in_y + in_both
    return (comparable - 2.0 * discordant) / math.sqrt((pairs - in_x) * (pairs - in_y))


def auroc(scores: Floats, good: Mask) -> float | None:
    """The chance that a good answer scores above a bad one, ties counted half (Mann & Whitney, 1947); None where there
    is only one kind."""
    positive = int(good.sum())
    negative = len(good) - positive
    if not positive or not negative:
        return None
    return float((ranks(scores)[good].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def auroc_estimate(good: Floats, bad: Floats) -> Estimate:
    """`auroc` with the interval of DeLong, DeLong & Clarke-Pearson (Biometrics 44, 1988), for independent answers.

    Raises:
        ValueError: fewer than two answers of a kind.
    """
    if min(len(good), len(bad)) < 2:
        raise ValueError("two good and two bad answers are the least")
    both = ranks(np.concatenate([good, bad]))
    of_good = (both[: len(good)] - ranks(good)) / len(bad)
    of_bad = 1.0 - (both[len(good) :] - ranks(bad)) / len(good)
    value = float(of_good.mean())
    error = math.sqrt(float(of_good.var(ddof=1)) / len(good) + float(of_bad.var(ddof=1)) / len(bad))
    return Estimate(value, max(value - Z95 * error, 0.0), min(value + Z95 * error, 1.0))


def balanced_accuracy(scores: Floats, good: Mask, threshold: float) -> float | None:
    """Mean of the share of bad answers that are flagged and of good ones that are not; None where there is only one
    kind. Flagged is a score below the threshold by more than 0.001, as in the stream."""
    if good.all() or not good.any():
        return None
    flagged = scores < threshold - MARGIN
    return (float(flagged[~good].mean()) + float((~flagged[good]).mean())) / 2.0


def resampled(
    statistics: Mapping[str, Statistic], groups: Sequence[str], resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Floats]:
    """The values of every statistic over the same resamples of whole groups; NaN where it is not defined.

    So the difference of two is paired. `groups` has one name for each row; give every row its own where rows are
    independent.
    """
    _, of_row = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(of_row))[:-1]) if len(order) else []
    rng = np.random.default_rng(seed)
    drawn: dict[str, Floats] = {name: np.full(resamples, np.nan) for name in statistics}
    for turn in range(resamples if members else 0):
        rows = np.concatenate([members[k] for k in rng.integers(0, len(members), len(members))])
        for name, statistic in statistics.items():
            value = statistic(rows)
            if value is not None:
                drawn[name][turn] = value
    return drawn


def estimate(value: float, drawn: Floats) -> Estimate:
    """`value` with the 2.5th and 97.5th percentile of its resamples; no interval where half of them have no value."""
    there = drawn[~np.isnan(drawn)]
    if len(there) * 2 < max(len(drawn), 1) or len(there) < 20:
        return Estimate(value, None, None)
    low, high = np.quantile(there, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value))


def reliability(scores: Floats, good: Mask, most_bins: int = 10) -> list[Bin]:
    """The reliability diagram: bins of about equal numbers of answers, from low scores to high ones. Equal scores stay
    in one bin, so a metric with few distinct values has fewer bins."""
    if not len(scores):
        return []
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    cuts = {round(k * len(order) / most_bins) for k in range(1, most_bins)}
    cuts = {int(np.searchsorted(sorted_scores, sorted_scores[min(cut, len(order) - 1)])) for cut in cuts}
    edges = sorted({0, len(order)} | cuts)
    return [_bin(scores[order[a:b]], good[order[a:b]]) for a, b in itertools.pairwise(edges)]


def disagreements(scores: Floats, ratings: Floats, most: int) -> list[int]:
    """Rows whose place among the scores is furthest from their place among the ratings, the furthest first.

    Places are mid-ranks: a binary rating puts all good answers in one place, and the worst-scored of them stand out.
    """
    if len(scores) < 2:
        return []
    gap = np.abs(ranks(scores) - ranks(ratings)) / len(scores)
    return [int(row) for row in np.argsort(-gap, kind="stable")[:most] if gap[row] > 0.0]


def answers_needed(correlation: float, half_width: float = 0.1) -> int:
    """How many independent answers give a Spearman correlation of this size a 95 % interval of ± `half_width`
    (Bonett & Wright, Psychometrika 65, 2000)."""
    spread = (1.0 + correlation * correlation / 2.0) * (1.0 - correlation * correlation) ** 2
    return max(math.ceil(Z95 * Z95 * spread / (half_width * half_width)) + 3, 10)


def _pearson(x: Floats, y: Floats) -> float | None:
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return min(max(float(x @ y) / scale, -1.0), 1.0) if scale > 0.0 else None


def _inversions(values: Integers) -> float:
    """How many pairs stand in descending order, by merging on one binary digit after the other: among values that agree
    in the higher digits, those with 0 here count the 1s before them."""
    found = 0.0
    order = np.arange(len(values))
    for digit in range(int(values.max(initial=0)).bit_length() - 1, -1, -1):
        head = values[order] >> (digit + 1)
        ones = (values[order] >> digit) & 1
        before = np.cumsum(ones)
        starts = np.flatnonzero(np.concatenate([[True], head[1:] != head[:-1]]))
        at_start = np.repeat(before[starts] - ones[starts], np.diff(np.append(starts, len(order))))
        found += float((before - at_start)[ones == 0].sum())
        order = order[np.lexsort((ones, head))]
    return found


def _bin(scores: Floats, good: Mask) -> Bin:
    n, hits = len(scores), float(good.sum())
    interval = score_interval(Moments(n=n, w=n, w2=n, ws=hits, s=hits, s2=hits), 0.0, 1.0)
    return Bin(float(scores.min()), float(scores.max()), n, float(scores.mean()), hits / n, interval.low, interval.high)
