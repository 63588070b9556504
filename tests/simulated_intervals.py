"""Many intervals at once: the product's own (its arithmetic on arrays; a test holds them equal), and their rivals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from metrics.interval import ADDED, KISH_SHARE, LEAST_SHRINKAGE, LEAST_SIZE, Z95

Array = npt.NDArray[np.float64]
Ends = tuple[Array, Array]

RESAMPLES = 500


def score_intervals(scores: Array, weights: Array) -> Ends:
    """`metrics.interval.score_interval` of each row (window) of scores in [0, 1]."""
    n, square = scores.shape[1], weights * weights
    w, w2, w3, w4 = (part.sum(axis=1) for part in (weights, square, square * weights, square * square))
    w2s, w2s2 = (square * scores).sum(axis=1), (square * scores * scores).sum(axis=1)
    s, s2 = scores.sum(axis=1), (scores * scores).sum(axis=1)
    mean = np.clip((weights * scores).sum(axis=1) / w, 0.0, 1.0)
    kish = w * w / w2
    plain = np.clip(s / n, 0.0, 1.0)
    one = plain * (1.0 - plain)
    with np.errstate(all="ignore"):
        ratio = np.where(one <= 1e-12, 1.0, np.minimum((np.maximum(s2 - s * s / n, 0.0) + one) / (n * one), 1.0))
    heavy = w2 / w * ratio
    centre = (w * mean + ADDED * heavy) / (w + 2.0 * ADDED * heavy)
    yes_no = centre * (1.0 - centre)
    squares = np.maximum(w2s2 - 2.0 * centre * w2s + centre * centre * w2, 0.0)
    squares = squares + ADDED * heavy * heavy * (1.0 - 2.0 * yes_no)
    shrinkage = np.maximum(1.0 - (2.0 * kish * w3 / (w * w2) - 1.0) / kish, LEAST_SHRINKAGE)
    by_squares = squares / (w + 2.0 * ADDED * heavy) ** 2 / shrinkage
    share = KISH_SHARE / (KISH_SHARE + w2 * w2 / w4)
    variance = share * ratio * yes_no / (kish + 2.0 * ADDED * ratio) + (1.0 - share) * by_squares
    size = np.maximum(yes_no / variance - 1.0, LEAST_SIZE)
    first, second = centre * size, (1.0 - centre) * size
    return (
        np.minimum(betaincinv(first, second, 0.025), mean),
        np.maximum(betaincinv(first, second, 0.975), mean),
    )


def rivals(scores: Array, weights: Array) -> dict[str, Ends]:
    """Wilson, Jeffreys and Clopper-Pearson, each on Kish's n, on Kish's n by the ratio of variances, and on the n that
    the weighted variance of the mean implies; and the percentile bootstrap."""
    total = weights.sum(axis=1)
    mean = np.clip((weights * scores).sum(axis=1) / total, 0.0, 1.0)
    yes_no = mean * (1.0 - mean)
    kish = total**2 / (weights**2).sum(axis=1)
    squares = ((weights * (scores - mean[:, None])) ** 2).sum(axis=1) / total**2
    with np.errstate(all="ignore"):
        ratio = np.where(yes_no > 0.0, yes_no / scores.var(axis=1, ddof=1), 1.0)
        linear = np.where(squares > 1e-15, yes_no / squares, kish)
    sizes = {
        "Kish": kish,
        "Kish x ratio": np.clip(kish * ratio, 0.1 * kish, 1e9),
        "weighted": np.clip(linear, 1e-3, 1e9),
    }
    found: dict[str, Ends] = {}
    for name, n in sizes.items():
        found[f"Wilson, {name}"] = _wilson(mean, n)
        found[f"Jeffreys, {name}"] = _jeffreys(mean, n)
        found[f"Clopper-Pearson, {name}"] = _clopper_pearson(mean, n)
    found["bootstrap"] = _bootstrap(scores, weights)
    return found


def coverage_and_width(ends: Ends, mean: float) -> tuple[float, float]:
    """The share of intervals that hold `mean`, and how wide they are on average."""
    low, high = np.nan_to_num(ends[0]), np.nan_to_num(ends[1], nan=1.0)
    return float(((low <= mean) & (mean <= high)).mean()), float((high - low).mean())


def _wilson(p: Array, n: Array) -> Ends:
    square = Z95 * Z95
    centre, scale = p + square / (2 * n), 1 + square / n
    half = Z95 * np.sqrt(p * (1 - p) / n + square / (4 * n * n))
    return np.maximum((centre - half) / scale, 0.0), np.minimum((centre + half) / scale, 1.0)


def _jeffreys(p: Array, n: Array) -> Ends:
    yes, no = p * n + 0.5, (1 - p) * n + 0.5
    return np.where(p <= 0, 0.0, betaincinv(yes, no, 0.025)), np.where(p >= 1, 1.0, betaincinv(yes, no, 0.975))


def _clopper_pearson(p: Array, n: Array) -> Ends:
    yes, no = p * n, (1 - p) * n
    low = np.where(yes < 1e-9, 0.0, betaincinv(np.maximum(yes, 1e-9), no + 1, 0.025))
    return low, np.where(no < 1e-9, 1.0, betaincinv(yes + 1, np.maximum(no, 1e-9), 0.975))


def _bootstrap(scores: Array, weights: Array) -> Ends:
    n = scores.shape[1]
    counts = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).T.astype(np.float64)
    means = (weights * scores) @ counts / (weights @ counts)
    return np.quantile(means, 0.025, axis=1), np.quantile(means, 0.975, axis=1)
