"""Traffic with a truth: answers that are good or bad, a judge that is wrong about them in its own way, sampling and
audits. For what the corrected score promises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.correction import LabelledScore
from metrics.interval import Interval, score_interval
from tests.simulated_windows import moments_of

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judging:
    """How a judge scores: the share of statements (3 to 5 an answer) that it supports in good and in bad answers."""

    good: float
    bad: float


JUDGES = {
    "fair": Judging(0.97, 0.45),
    "strict": Judging(0.85, 0.3),
    "lenient": Judging(0.99, 0.85),
    "blind": Judging(0.9, 0.9),
}


@dataclass(frozen=True)
class Drawn:
    """`score` and `good` (1 or 0) of sampled answers, and their inclusion probabilities; each of shape (n,)."""

    score: Array
    good: Array
    probability: Array


def draw(share: float, judging: Judging, design: str, n: int, rng: np.random.Generator) -> Drawn:
    """`n` sampled answers of traffic in which `share` is good.

    `uniform`: one rate. `stratified`: 1/11 of the traffic (complaints) is always sampled, the rest one in ten; it is
    worse by 0.3. Half of a sample is of either.
    """
    if design == "uniform":
        probability = np.full(n, 0.1)
        expected = np.full(n, share)
    else:
        always = rng.random(n) < 0.5
        probability = np.where(always, 1.0, 0.1)
        worse = share - 0.3
        expected = np.where(always, worse, (11.0 * share - worse) / 10.0)
        if expected.max() > 1.0:
            raise ValueError("no such traffic")
    good = (rng.random(n) < expected).astype(np.float64)
    statements = rng.integers(3, 6, n)
    supported = rng.binomial(statements, np.where(good > 0.0, judging.good, judging.bad))
    return Drawn(supported / statements, good, probability)


def estimate(drawn: Drawn) -> tuple[float, Interval]:
    """Weighted mean of the scores, and its interval, as a window has them."""
    (moments,) = moments_of(drawn.score[None, :], 1.0 / drawn.probability[None, :])
    return moments.mean, score_interval(moments, 0.0, 1.0)


def labelled_of(drawn: Drawn, audit: float = 0.01) -> list[LabelledScore]:
    """As many audited answers, labelled truly."""
    columns = drawn.score.tolist(), drawn.good.tolist(), drawn.probability.tolist()
    return [LabelledScore(score, good > 0.0, p * audit) for score, good, p in zip(*columns, strict=True)]
