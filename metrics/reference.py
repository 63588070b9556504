"""What a score is at present, as a smooth curve over the day: the reference that a change is a change from.

Weighted least squares on a constant and two harmonics of 24 h, with exponential forgetting. The harmonics are shrunk
towards none (ridge), so that a day without rhythm is not given one by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DAY = 86_400.0
MEMORY_SECONDS = 7 * DAY
"""After so long a score counts 1/e of a new one."""
RIDGE = 1.0 / 0.15**2
"""Rhythms are expected to be about 0.15 standard deviations of a score high."""

MOST_PRECISION = 1000.0
"""After a change the rhythm of before is believed as firmly as after twice so many scores."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The reference at one time: `coefficients` of constant and harmonics, and the variance of the curve's own error,
    averaged over the day, in units of the variance of one score."""

    coefficients: Array
    variance: float

    def at(self, times: Array) -> Array:
        """Its values at these times (seconds since the epoch), shape (n,)."""
        return np.asarray(_features(times) @ self.coefficients)


class Reference:
    """Sums for the fit. Scores may come in any order of time."""

    __slots__ = (
        "_counted",
        "_cross",
        "_first",
        "_last",
        "_origin",
        "_precision",
        "_prior",
        "_products",
        "samples",
        "weight",
    )

    def __init__(self) -> None:
        self._products = np.zeros((5, 5))
        self._cross = np.zeros(5)
        self._origin: float | None = None
        self._first, self._last = math.inf, -math.inf
        self._counted = 0.0
        # What is believed of the harmonics before any score: that they are `_prior`, as firmly as after so many scores.
        self._prior = np.zeros(5)
        self._precision = np.array([0.0, RIDGE, RIDGE, RIDGE, RIDGE])
        self.samples = 0.0
        """How many scores, each counted by how much it is remembered (at the time of the last one)."""
        self.weight = 0.0
        """The sum of their weights, likewise."""

    @property
    def last(self) -> float:
        """The time of the latest score (seconds since the epoch); -infinity before the first."""
        return self._last

    @property
    def span(self) -> float:
        """Seconds from the earliest score to the latest; restarts do not shorten it."""
        return max(self._last - self._first, 0.0)

    @property
    def mean_weight(self) -> float:
        return self.weight / self.samples

    @property
    def rate(self) -> float:
        """Scores a second, over what is remembered, restarts or not."""
        span = max(self._last - self._first, 60.0)
        return self._counted / (MEMORY_SECONDS * -math.expm1(-span / MEMORY_SECONDS))

    def add(self, times: Array, scores: Array, weights: Array) -> None:
        """Times (seconds since the epoch), scores and weights (1 / inclusion probability), each of shape (n,)."""
        latest = float(times.max())
        if self._origin is None:
            self._origin = latest
        elif latest > self._origin:
            share = math.exp((self._origin - latest) / MEMORY_SECONDS)
            self._forget(share)
            self._counted *= share
            self._origin = latest
        kept = np.exp((times - self._origin) / MEMORY_SECONDS)
        features = _features(times)
        weighted = features * (kept * weights)[:, None]
        self._products += weighted.T @ features
        self._cross += weighted.T @ scores
        self.samples += float(kept.sum())
        self._counted += float(kept.sum())
        self.weight += float((kept * weights).sum())
        self._first, self._last = min(self._first, float(times.min())), max(self._last, latest)

    def curve(self) -> Curve:
        """The fit; `samples` must not be 0."""
        products = self._products / self.mean_weight
        inverse = np.linalg.inv(products + np.diag(self._precision))
        spread = np.diag(inverse)
        coefficients = inverse @ (self._cross / self.mean_weight + self._precision * self._prior)
        return Curve(coefficients, float(spread[0] + spread[1:].sum() / 2.0))

    def restart(self, size: float, samples: float) -> None:
        """The level has changed by `size`, which is known from `samples` scores; the rhythm is taken to be the same."""
        known = np.diag(self._products)[1:] / self.mean_weight
        self._prior = np.append(0.0, self.curve().coefficients[1:])
        self._precision = np.append(0.0, np.minimum(self._precision[1:] + known, MOST_PRECISION))
        self._cross += size * self._products[:, 0]
        if samples < self.samples:
            self._forget(samples / self.samples)

    def _forget(self, share: float) -> None:
        self._products *= share
        self._cross *= share
        self.samples *= share
        self.weight *= share


def _features(times: Array) -> Array:
    angle = times * (2.0 * math.pi / DAY)
    return np.column_stack([np.ones(len(times)), np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)])
