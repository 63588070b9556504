"""Simulated windows: scores and weights as sampling leaves them, for what intervals and means promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.interval import Moments

Array = npt.NDArray[np.float64]

DESIGNS = ("uniform", "stratified", "stratified_better", "skewed", "skewed_worse")


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
