"""What a CUSUM takes off each pull, hour by hour, so that chance lifts the sum as rarely at one hour as at another.

How rarely chance lifts a sum of increments g to a height h is about exp(-θh), where θ > 0 solves E exp(θg) = 1
(Lundberg's exponent; Asmussen and Albrecher, Ruin Probabilities, 2010). Shares scatter more, and to other sides, where
their mean is lower: with one allowance for the whole day θ is smaller at some hours than at others, and nearly all
false alarms come from there. So the allowance follows the mean: at mean m it is log E_m exp(θ pull) / θ, by the
binomial law, with the θ of all hours together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVELS = np.linspace(0.02, 0.98, 49)
"""Means of a share at which the allowance is computed; between them it is interpolated."""
WEIGHTS = 12
"""Quantiles that stand for all weights."""
MOST_STATEMENTS = 40
MOST_RATIO = 4.0
"""The allowance at one hour is at most so many times the usual one, and at least the same part of it."""
_HALVINGS = 40
_LARGEST_EXPONENT = 500.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """In units of the score: the usual one, and how many times that it is at each of `LEVELS`."""

    usual: float
    ratios: Array

    def at(self, levels: Array) -> Array:
        """Where a share of these means is expected, shape (n,)."""
        return np.asarray(self.usual * np.interp(levels, LEVELS, self.ratios))


def even(usual: float) -> Allowance:
    """The same at every mean."""
    return Allowance(usual, np.ones(len(LEVELS)))


def by_level(
    usual: float, sign: float, pulls: Array, relative: Array, levels: Array, most: float, centre: float
) -> Allowance:
    """For the sum of sign * pull, of shares.

    `pulls`: of some answers without change, shape (n,), cut at `most` either way and then less `centre`; `relative`:
    their weights by the mean weight; `levels`: the mean that was expected of each. It is `usual` for them on average.
    """
    exponent = lundberg(sign * pulls - usual)
    if not 0.0 < exponent < math.inf:
        return even(usual)
    # As many statements as explain the scatter.
    variance = float((pulls * pulls / relative).mean())
    statements = int(np.clip(round(float((levels * (1.0 - levels)).mean()) / variance), 1, MOST_STATEMENTS))
    weights = np.quantile(relative, (np.arange(WEIGHTS) + 0.5) / WEIGHTS)
    growth = _growth(exponent, sign, statements, weights, most, centre)
    typical = float(np.interp(levels, LEVELS, growth).mean())
    if typical <= 0.0:
        return even(usual)
    return Allowance(usual, np.clip(growth / typical, 1.0 / MOST_RATIO, MOST_RATIO))


def lundberg(increments: Array) -> float:
    """θ > 0 with mean(exp(θ increments)) = 1, for increments of negative mean; infinity where none is positive."""
    highest = float(increments.max())
    if highest <= 0.0:
        return math.inf
    low, high = 0.0, _LARGEST_EXPONENT / highest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if float(np.exp(middle * increments).mean()) < 1.0:
            low = middle
        else:
            high = middle
    return low


def _growth(exponent: float, sign: float, statements: int, weights: Array, most: float, centre: float) -> Array:
    """log E exp(exponent * sign * pull) at each of `LEVELS`."""
    supported = np.arange(statements + 1)
    choices = np.array([math.comb(statements, k) for k in supported], np.float64)
    logs = np.log(choices) + supported * np.log(LEVELS)[:, None] + (statements - supported) * np.log1p(-LEVELS)[:, None]
    distances = supported / statements - LEVELS[:, None]
    pulls = np.clip(weights[:, None, None] * distances, -most, most) - centre
    grown = np.exp(logs + np.minimum(exponent * sign * pulls, _LARGEST_EXPONENT))
    return np.asarray(np.log(grown.sum(axis=-1).mean(axis=0)))
