"""Confidence interval of a weighted mean of bounded scores, and a quantile of a weighted histogram.

The interval is the score interval of Wilson (JASA 22, 1927) on the metric's range mapped to [0, 1], with an effective
number of samples in place of n: Kish's n for unequal weights ((Σw)² / Σw²; Survey Sampling, 1965), times the ratio of
the variance that yes/no scores of this mean would have to the variance of the scores. That variance is the unweighted
one: with unequal weights a few bad answers may carry hardly any weight, and the weighted variance would then promise a
precision that is not there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959963984540054

PRIOR = 1.0
"""How many samples' worth of yes/no variance is mixed into the variance of the scores: it bounds the ratio at small n,
and where all scores are equal."""
TINY = 1e-300
"""A mean so near to an end that its variance is no number any more."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over samples with score s and weight w = 1 / inclusion probability: n, Σw, Σw², Σws, Σs, Σs²."""

    n: float
    w: float
    w2: float
    ws: float
    s: float
    s2: float

    @property
    def mean(self) -> float:
        """The weighted mean (Hájek's estimate of the mean over all events); n must not be 0."""
        return self.ws / self.w

    @property
    def kish(self) -> float:
        """Effective number of samples under the weights: n where all weights are equal, less otherwise."""
        return self.w * self.w / self.w2


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


def score_interval(moments: Moments, low: float, high: float, z: float = Z95) -> Interval:
    """The interval of the weighted mean; [low, high] is the metric's range, which it never leaves.

    Its width is above 0 even where all scores are equal. `moments.n` must not be 0.
    """
    span = high - low
    mean = min(max((moments.mean - low) / span, 0.0), 1.0)
    scaled = wilson(mean, _effective(moments, mean, low, span), z)
    return Interval(
        max(low, min(low + span * scaled.low, moments.mean)), min(high, max(low + span * scaled.high, moments.mean))
    )


def _effective(moments: Moments, mean: float, low: float, span: float) -> float:
    yes_no = mean * (1.0 - mean)
    if yes_no < TINY:
        return moments.kish
    plain = moments.s / moments.n
    squares = max(moments.s2 - moments.n * plain * plain, 0.0) / (span * span)
    variance = (squares + PRIOR * yes_no) / (moments.n - 1.0 + PRIOR)
    # A weighted mean nearer to an end than the plain scores would make the ratio fall below what any weighting of
    # scores in [0, 1] can mean; a tenth is the floor.
    return moments.kish * max(yes_no / variance, 0.1)


def wilson(p: float, n: float, z: float = Z95) -> Interval:
    """Score interval of a share `p` of `n` trials, in [0, 1] (Wilson, JASA 22, 1927). `n` above 0 may be effective."""
    z2 = z * z
    centre = p + z2 / (2.0 * n)
    half = z * math.sqrt(p * (1.0 - p) / n + z2 / (4.0 * n * n))
    scale = 1.0 + z2 / n
    return Interval(max((centre - half) / scale, 0.0), min((centre + half) / scale, 1.0))


def quantile(weights: Sequence[float], edges: Sequence[float], q: float) -> float:
    """The q-quantile of a histogram: `weights[i]` lies between `edges[i]` and `edges[i + 1]`, spread evenly.

    Raises:
        ValueError: no weight at all.
    """
    total = math.fsum(weights)
    if total <= 0.0:
        raise ValueError("a histogram without weight has no quantile")
    target = q * total
    passed = 0.0
    last = edges[0]
    for weight, left, right in zip(weights, edges, edges[1:], strict=False):
        if weight > 0.0:
            if passed + weight >= target:
                return left + (right - left) * max(target - passed, 0.0) / weight
            passed += weight
            last = right
    return last
