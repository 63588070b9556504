"""From scores to probabilities that mean what they say, and how far they are from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.logistic import logistic

Floats = npt.NDArray[np.float64]
BINS = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """P(faithful) = 1 / (1 + exp(-(slope x + intercept + many log n))): Platt's method (1999), with the number of
    statements, as a long answer has more chances to go wrong."""

    slope: float
    intercept: float
    many: float

    def probability(self, log_odds: float, statements: int) -> float:
        """`log_odds` as of `metrics.faithfulness.answer_log_odds`."""
        value = self.slope * log_odds + self.intercept + self.many * math.log(max(statements, 1))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, value))))


def fitted(log_odds: Floats, statements: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], share: Floats) -> Curve:
    """The curve of labelled answers, each weighted by `share`; the slope is never negative.

    Raises:
        ValueError: only one class.
    """
    if len(np.unique(labels)) < 2:
        raise ValueError("answers of both kinds are needed to calibrate")
    # Standardised, so that the penalty weighs alike on both; a few hundred answers outweigh it.
    spread = float(log_odds.std()) or 1.0
    x = np.stack([log_odds / spread, np.log(np.maximum(statements, 1)), np.ones(len(labels))], axis=1)
    free = np.inf
    low, high = np.array([0.0, -free, -free]), np.array([free, free, free])
    slope, many, intercept = logistic(x, labels.astype(np.float64), 100.0 * share / share.mean(), low, high, steps=2000)
    return Curve(float(slope) / spread, float(intercept), float(many))


def calibration_error(probabilities: Floats, labels: npt.NDArray[np.int64], bins: int = BINS) -> float:
    """Expected calibration error: mean distance of a bin's mean probability from its share of 1; bins of equal mass.

    >>> calibration_error(np.full(10, 0.3), np.array([1, 1, 1] + [0] * 7), 1)
    0.0
    """
    order = np.argsort(probabilities, kind="stable")
    error = 0.0
    for part in np.array_split(order, min(bins, len(order))):
        error += len(part) * abs(float(probabilities[part].mean()) - float(labels[part].mean()))
    return error / len(order)


def excess_error(probabilities: Floats, labels: npt.NDArray[np.int64], draws: int = 500, seed: int = 1) -> float:
    """The calibration error less what a perfectly calibrated model shows at these probabilities by chance alone."""
    rng = np.random.default_rng(seed)
    by_chance = [
        calibration_error(probabilities, (rng.random(len(probabilities)) < probabilities).astype(np.int64))
        for _ in range(draws)
    ]
    return calibration_error(probabilities, labels) - float(np.mean(by_chance))
