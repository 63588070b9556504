"""The trained layers in several precisions: probabilities over the self-test's passages are what is compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from metrics.encoder import Precision
from metrics.precision import Comparison
from metrics.self_test import PASSAGES
from metrics.verifier.reader import Opinions

MEAN_DIFFERENCE = 0.03
"""Largest mean difference of a probability from float32's: far below what moves a ranking."""
Probabilities = npt.NDArray[np.float64]


def comparison(make: Callable[[Precision], Opinions]) -> Comparison[Opinions, Probabilities]:
    return Comparison(make, said=_probabilities, apart=_apart, most_apart=MEAN_DIFFERENCE, work=_probabilities)


def _probabilities(network: Opinions) -> Probabilities:
    """Every passage of the self-test against itself, its neighbour and its own beginning: shape (statements, 3)."""
    asked = [(passage, [passage, PASSAGES[k - 1], passage[: len(passage) // 2]]) for k, passage in enumerate(PASSAGES)]
    return np.array([opinion.classes for own in network.opinions(asked) for opinion in own], np.float64)


def _apart(said: Probabilities, exact: Probabilities) -> float:
    difference = np.abs(said - exact)
    return float(difference.mean()) if np.isfinite(difference).all() else float("inf")
