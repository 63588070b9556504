"""Simulated windows: scores and weights as sampling leaves them, for what intervals and means promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.interval import Moments

Array = npt.NDArray[np.float64]

DESIGNS = ("uniform", "stratified", "skewed", "stratified_better", "skewed_worse")
BARRED = DESIGNS[:3]
"""Those that the bars are about; the others are harder."""


@dataclass(frozen=True)
class Cell:
    """`n` scores a window, whose mean over all traffic is `mean`; `graded`: shares of 3 to 5 statements, else yes/no.

    `uniform`: one rate. `stratified`: 1/21 of the traffic is sampled 20 times as often, and is worse by 0.2;
    `stratified_better`: it is better. `skewed`: log-normal weights (sigma 1), whatever the score. `skewed_worse`: the
    inclusion probability lies anywhere in 0.02 to 1 (log-uniform over the traffic), and the more likely it is that an
    answer is sampled, the worse it is.
    """

    design: str
    graded: bool
    mean: float
    n: int

    def __str__(self) -> str:
        return f"{self.design} {'graded' if self.graded else 'yes/no'} {self.mean} n={self.n}"


def draw(cell: Cell, windows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Scores and weights, each of shape (windows, n)."""
    shape = windows, cell.n
    mean = cell.mean
    expected = np.full(shape, mean)
    if cell.design == "uniform":
        weights = np.full(shape, 20.0)
    elif cell.design.startswith("stratified"):
        common = rng.random(shape) < 0.5
        weights = np.where(common, 20.0, 1.0)
        other = mean - 0.2 if cell.design == "stratified" else min(mean + 0.2, 1.0)
        expected = np.where(common, (mean - other / 21.0) * 21.0 / 20.0, other)
    elif cell.design == "skewed":
        weights = np.exp(rng.standard_normal(shape))
    else:
        probability = rng.uniform(0.02, 1.0, shape)
        weights = 1.0 / probability
        place = 1.0 - np.log(probability) / np.log(0.02)
        expected = mean - (0.1 if mean > 0.9 else 0.4) * (place - 0.5)
    if not cell.graded:
        return (rng.random(shape) < expected).astype(float), weights
    statements = rng.integers(3, 6, shape)
    return rng.binomial(statements, np.clip(expected, 0.0, 1.0)) / statements, weights


@dataclass(frozen=True)
class Policy:
    """What settings can make of the inclusion probability: traffic in parts, each with its share, rate and mean."""

    name: str
    shares: tuple[float, ...]
    rates: tuple[float, ...]
    means: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over all traffic."""
        return sum(share * mean for share, mean in zip(self.shares, self.means, strict=True))


POLICIES = (
    Policy("one rate, budget halved by day: 0.2, 0.1, 0.05", (0.4, 0.3, 0.3), (0.2, 0.1, 0.05), (0.92, 0.92, 0.9)),
    Policy("rate 0.05, and always on negative feedback", (0.95, 0.05), (0.05, 1.0), (0.95, 0.6)),
    Policy("two segments, rates 0.05 and 0.5, the latter worse by 0.2", (0.8, 0.2), (0.05, 0.5), (0.95, 0.75)),
    Policy(
        "five segments, rates 0.02 to 1, the worse the more",
        (0.4, 0.25, 0.2, 0.1, 0.05), (0.02, 0.05, 0.1, 0.25, 1.0), (0.97, 0.92, 0.85, 0.75, 0.6),
    ),
)  # fmt: skip


def draw_policy(policy: Policy, n: int, windows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Graded scores and weights of windows over all segments, each of shape (windows, n)."""
    rates, means = np.array(policy.rates), np.array(policy.means)
    sampled = np.array(policy.shares) * rates
    part = rng.choice(len(rates), (windows, n), p=sampled / sampled.sum())
    statements = rng.integers(3, 6, (windows, n))
    return rng.binomial(statements, means[part]) / statements, 1.0 / rates[part]


def draw_sums(policy: Policy, n: int, windows: int, rng: np.random.Generator) -> tuple[Array, Array, int, float]:
    """Windows of one and the same number of events, each sampled by itself, so that `n` scores are only expected.

    Of each window the sums of weight * score and of the weights, shape (windows,); how many events, and their mean.
    Scores are shares of 4 statements.
    """
    sampled = sum(share * rate for share, rate in zip(policy.shares, policy.rates, strict=True))
    events = [round(share * n / sampled) for share in policy.shares]
    scores, weights = np.zeros(windows), np.zeros(windows)
    for count, rate, mean in zip(events, policy.rates, policy.means, strict=True):
        taken = rng.binomial(count, rate, windows)
        weights += taken / rate
        scores += rng.binomial(4 * taken, mean) / 4 / rate
    mean = sum(count * mean for count, mean in zip(events, policy.means, strict=True)) / sum(events)
    return scores, weights, sum(events), mean


def moments_of(scores: Array, weights: Array) -> list[Moments]:
    """Of each window (row)."""
    squared = weights * weights
    columns = [
        np.full(len(scores), float(scores.shape[1])),
        *(
            part.sum(axis=1)
            for part in (
                weights, squared, weights * scores, scores, scores * scores, squared * weights, squared * squared,
                squared * scores, squared * scores * scores,
            )
        ),
    ]  # fmt: skip
    return [Moments(*row) for row in np.column_stack(columns).tolist()]
