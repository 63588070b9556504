"""Confidence interval of a weighted mean of bounded scores, and a quantile of a weighted histogram.

The interval is made like that of Jeffreys: from a beta distribution whose mean and variance are those of the weighted
mean, after a part of a yes and of a no of a heavy weight have been added (for equal weights and yes/no scores, half of
each would be Jeffreys' own). Unequal weights enter in three ways:

- what is added has the size-biased mean weight Σw²/Σw, so that a few bad answers of small weight do not promise that
  there are none of large weight (the idea of Fay and Feuer, Statistics in Medicine 16, 1997);
- the variance of the weighted mean is Σw²(s - m)²/(Σw)², corrected for its bias under unequal weights;
- that variance rests on (Σw²)²/Σw⁴ scores; where those are few, the variance by Kish's effective n ((Σw)²/Σw²; Survey
  Sampling, 1965) is mixed in.

Graded scores vary less than yes/no scores of the same mean. The ratio of the two is taken from the plain scores, with
one yes/no score mixed in. The constants are tuned by simulation: docs/statistics.md has coverage and width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metrics.beta import beta_quantile

Z95 = 1.959963984540054

ADDED = 0.6
"""How much of a yes, and of a no, is added."""
KISH_SHARE = 10.0
"""How many scores the variance must rest on to count as much as that by Kish's n."""
LEAST_SHRINKAGE = 0.4
LEAST_SIZE = 0.2


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over samples with score s and weight w = 1 / inclusion probability: n, Σw, Σw², Σws, Σs, Σs², Σw³, Σw⁴,
    Σw²s, Σw²s². The last four may be left out where all weights are equal."""

    n: float
    w: float
    w2: float
    ws: float
    s: float
    s2: float
    w3: float | None = None
    w4: float | None = None
    w2s: float | None = None
    w2s2: float | None = None

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


def score_interval(moments: Moments, low: float, high: float, level: float = 0.95) -> Interval:
    """The interval of the weighted mean; [low, high] is the metric's range, which it never leaves.

    Its width is above 0 even where all scores are equal. `moments.n` must not be 0.
    """
    span = high - low
    first, second = _shape(moments, low, span)
    tail = (1.0 - level) / 2.0
    return Interval(
        max(low, min(low + span * beta_quantile(tail, first, second), moments.mean)),
        min(high, max(low + span * beta_quantile(1.0 - tail, first, second), moments.mean)),
    )


def standard_error(moments: Moments, low: float, high: float) -> float:
    """Of the weighted mean: the standard deviation of the distribution that `score_interval` is made from, and so
    never 0. `moments.n` must not be 0."""
    first, second = _shape(moments, low, high - low)
    total = first + second
    return (high - low) * math.sqrt(first * second / (total * total * (total + 1.0)))


def _shape(moments: Moments, low: float, span: float) -> tuple[float, float]:
    """The two parameters of the beta distribution, on the range mapped to [0, 1]."""
    n, w, w2 = moments.n, moments.w, moments.w2
    unit = w / n
    w3 = moments.w3 if moments.w3 is not None else n * unit**3
    w4 = moments.w4 if moments.w4 is not None else n * unit**4
    w2s = moments.w2s if moments.w2s is not None else unit * unit * moments.s
    w2s2 = moments.w2s2 if moments.w2s2 is not None else unit * unit * moments.s2
    mean = min(max((moments.mean - low) / span, 0.0), 1.0)
    kish = moments.kish

    ratio = _variance_ratio(moments, low, span)
    weight = w2 / w * ratio
    centre = (w * mean + ADDED * weight) / (w + 2.0 * ADDED * weight)
    yes_no = centre * (1.0 - centre)
    about = low + span * centre
    squares = max(w2s2 - 2.0 * about * w2s + about * about * w2, 0.0) / (span * span)
    squares += ADDED * weight * weight * (1.0 - 2.0 * yes_no)
    # Heavy scores pull the mean towards themselves, and so look nearer to it than they are.
    shrinkage = max(1.0 - (2.0 * kish * w3 / (w * w2) - 1.0) / kish, LEAST_SHRINKAGE)
    by_squares = squares / (w + 2.0 * ADDED * weight) ** 2 / shrinkage
    by_kish = ratio * yes_no / (kish + 2.0 * ADDED * ratio)
    share = KISH_SHARE / (KISH_SHARE + w2 * w2 / w4)
    variance = share * by_kish + (1.0 - share) * by_squares
    # An inclusion probability of 1e-80 is no number any more to the fourth power: then nothing is known.
    size = max(yes_no / variance - 1.0, LEAST_SIZE) if 0.0 < variance < math.inf else LEAST_SIZE
    if not math.isfinite(centre * size):
        return LEAST_SIZE / 2.0, LEAST_SIZE / 2.0
    return centre * size, (1.0 - centre) * size


def _variance_ratio(moments: Moments, low: float, span: float) -> float:
    """Variance of the plain scores by that of yes/no scores of their mean; 1 where nothing is known of it."""
    n = moments.n
    plain = min(max((moments.s / n - low) / span, 0.0), 1.0)
    yes_no = plain * (1.0 - plain)
    if yes_no <= 1e-12:
        return 1.0
    squares = max(moments.s2 - moments.s * moments.s / n, 0.0) / (span * span)
    return min((squares + yes_no) / (n * yes_no), 1.0)


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
