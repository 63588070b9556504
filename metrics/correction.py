"""The rolling score, corrected by what people said: prediction-powered inference (Angelopoulos et al., Science 382,
2023, arXiv:2301.09633).

What people label is whether an answer is good; what they are compared with is a score in [0, 1], read as the share of
good that it predicts. The mean score of a window plus the *rectifier*, the mean of (label - score) over audited and
labelled answers, estimates the share of good answers among all those for which the score is defined, however wrong the
judge is. Each labelled answer weighs 1 / (inclusion probability x audit probability).

The labels are of the last weeks, the window of the last minutes: what is assumed is that the judge errs now as it did
then, not that answers are as good now as they were then. The power tuning of PPI++ (arXiv:2311.01453) is left out for
that reason: it weighs the window less where the judge is weak, and so would show the share of good answers of the last
weeks in the midst of an incident.

The interval joins three intervals for means of shares (`metrics.interval`): of the window, and of the two sides of the
rectifier, (label - score) where it is above 0 and where it is below. They are joined as Zou and Donner do (MOVER,
Statistics in Medicine 27, 2008), so each may be as lopsided as few and rare disagreements make it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.interval import Interval, Moments, score_interval

Array = npt.NDArray[np.float64]

MINIMUM = 50
"""Fewer labels than this correct nothing."""


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """One audited answer: its score in [0, 1], whether a person finds it good, and the probability, in (0, 1], that it
    would be both sampled and audited; its weight is one by that."""

    score: float
    good: bool
    probability: float


@dataclass(frozen=True, slots=True)
class Rectifier:
    """What is added to a mean score: an estimate in [-1, 1] from `labels` labels, and its 95 % interval."""

    labels: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Corrected:
    """Share of good answers, in [0, 1], and its 95 % interval."""

    mean: float
    low: float
    high: float


def rectifier(labelled: Sequence[LabelledScore]) -> Rectifier | None:
    """The rectifier of these labels; None where there are too few."""
    if len(labelled) < MINIMUM:
        return None
    score = np.array([one.score for one in labelled])
    good = np.array([one.good for one in labelled])
    probability = np.array([one.probability for one in labelled])
    # Relative, because the fourth power of 1 / 1e-100 is no number.
    weight = probability.min() / probability
    above, below = np.where(good, 1.0 - score, 0.0), np.where(good, 0.0, score)
    up, down = _moments(above, weight), _moments(below, weight)
    up_interval, down_interval = score_interval(up, 0.0, 1.0), score_interval(down, 0.0, 1.0)
    mean = up.mean - down.mean
    correlation = _correlation(weight * (above - up.mean), weight * (below - down.mean))
    return Rectifier(
        len(labelled),
        mean,
        max(-1.0, mean - _joined(up.mean - up_interval.low, down_interval.high - down.mean, -correlation)),
        min(1.0, mean + _joined(up_interval.high - up.mean, down.mean - down_interval.low, -correlation)),
    )


def corrected(mean: float, interval: Interval, by: Rectifier) -> Corrected:
    """The corrected mean of a window whose mean score is `mean`. The interval never leaves [0, 1], and has a width."""
    share = min(max(mean + by.mean, 0.0), 1.0)
    below = math.hypot(mean - interval.low, by.mean - by.low)
    above = math.hypot(interval.high - mean, by.high - by.mean)
    return Corrected(share, max(0.0, share - below), min(1.0, share + above))


def _moments(value: Array, weight: Array) -> Moments:
    squared = weight * weight
    sums = (
        weight, squared, weight * value, value, value * value, squared * weight, squared * squared, squared * value,
        squared * value * value,
    )  # fmt: skip
    return Moments(float(len(value)), *(float(each.sum()) for each in sums))


def _correlation(first: Array, second: Array) -> float:
    """Of two weighted means, from what each answer adds to them; 0 where one of them does not vary."""
    scale = math.sqrt(float((first * first).sum() * (second * second).sum()))
    return min(max(float((first * second).sum()) / scale, -1.0), 1.0) if scale > 0.0 else 0.0


def _joined(first: float, second: float, correlation: float) -> float:
    """The distance to the end of an interval for a sum, from those of its parts."""
    return math.sqrt(max(first * first + second * second + 2.0 * correlation * first * second, 0.0))
