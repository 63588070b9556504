"""Simulated traffic of one series over days, for what change detection promises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metrics.detector import Scores

DAY = 86_400.0


@dataclass(frozen=True)
class Traffic:
    """Faithfulness of answers of 3 to 5 statements. `volume`: how far the hourly number swings over a day (0.8: from
    0.2 to 1.8 times `per_hour`); `rhythm`: how far the mean does. `probabilities`: one of them for each score, by
    chance."""

    per_hour: float = 60.0
    mean: float = 0.92
    volume: float = 0.8
    rhythm: float = 0.0
    probabilities: tuple[float, ...] = (1.0,)
    change_at: float = math.inf
    change: float = 0.0


def stream(traffic: Traffic, days: float, every: float, rng: np.random.Generator) -> Iterator[Scores]:
    """The scores of `days` days in portions of `every` seconds."""
    number = rng.poisson(traffic.per_hour * 24.0 * days * (1.0 + traffic.volume))
    times = np.sort(rng.uniform(0.0, days * DAY, number))
    day = 2.0 * math.pi * times / DAY
    times = times[rng.random(number) < (1.0 + traffic.volume * np.sin(day)) / (1.0 + traffic.volume)]
    mean = traffic.mean + traffic.rhythm * np.cos(2.0 * math.pi * times / DAY)
    mean = np.where(times >= traffic.change_at, mean + traffic.change, mean)
    statements = rng.integers(3, 6, len(times))
    values = rng.binomial(statements, np.clip(mean, 0.0, 1.0)) / statements
    weights = 1.0 / rng.choice(traffic.probabilities, len(times))
    edges = np.searchsorted(times, np.arange(0.0, days * DAY + every, every))
    for begin, end in itertools.pairwise(edges.tolist()):
        if end > begin:
            scores = Scores()
            scores.times.extend(times[begin:end])
            scores.values.extend(values[begin:end])
            scores.weights.extend(weights[begin:end])
            scores.answers = [(f"evt-{number}", None) for number in range(begin, end)]
            yield scores
