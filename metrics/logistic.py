"""Logistic regression as the fits of the judges use it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
PENALTY = 10.0


def logistic(x: Floats, y: Floats, share: Floats, low: Floats, high: Floats, steps: int = 400) -> Floats:
    """Weights (columns of `x`,) of a weighted logistic regression within bounds.

    Minimises Σ share · log-loss + PENALTY/2 · |weights|² with low ≤ weights ≤ high, by accelerated projected gradient
    (Nesterov 1983). `x`: (rows, columns), a column of ones for an intercept; `y` in [0, 1] and `share` >= 0: (rows,).
    """
    curvature = 0.25 * float(np.linalg.norm((x * share[:, None]).T @ x, 2)) + PENALTY
    weights = ahead = np.zeros(x.shape[1])
    speed = 1.0
    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ ahead, -30.0, 30.0)))
        gradient = x.T @ (share * (p - y)) + PENALTY * ahead
        new = np.clip(ahead - gradient / curvature, low, high)
        faster = (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        ahead = new + (speed - 1.0) / faster * (new - weights)
        weights, speed = new, faster
    return np.asarray(weights)
