"""When a precision of the embedder agrees with float32, and which one is taken."""

from __future__ import annotations

import numpy as np

from metrics.embedding_precision import LARGEST_DIFFERENCE, cosines_apart
from metrics.precision import Trial, choose


def best(*trials: Trial) -> str:
    return choose(trials, LARGEST_DIFFERENCE)


def test_quickest_that_agrees_wins() -> None:
    assert best(Trial("fp32", 1.0, 0.0), Trial("bf16", 0.5, 3e-4), Trial("int8", 0.6, 1e-4)) == "bf16"


def test_speed_does_not_buy_disagreement() -> None:
    assert best(Trial("fp32", 1.0, 0.0), Trial("int8", 0.1, 6e-4)) == "fp32"
    assert best(Trial("fp32", 1.0, 0.0), Trial("bf16", 0.1, float("inf"))) == "fp32"


def test_small_gain_is_not_worth_another_precision() -> None:
    assert best(Trial("fp32", 1.09, 0.0), Trial("bf16", 1.0, 1e-5)) == "fp32"


def test_vectors_are_compared_by_their_cosines() -> None:
    exact = np.eye(3, dtype=np.float32)
    assert cosines_apart(-exact, exact) == 0.0
    turned = exact.copy()
    turned[0] = [0.6, 0.8, 0.0]
    assert abs(cosines_apart(turned, exact) - 0.8) < 1e-6
    assert cosines_apart(np.full((3, 3), np.nan, np.float32), exact) == float("inf")
