"""Simulated answers with labels, for what a contrast names."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from metrics.contrast_sums import SpanSums


@dataclass(frozen=True)
class Traffic:
    """Answers of 3 to 5 statements. `values`: of each label, drawn by chance. `falls`: what a label's value takes off
    the mean of 0.92. `probabilities`: inclusion probabilities, drawn by chance."""

    n: int
    values: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"lang": ["en", "zh"], "app": ["a", "b", "c"], "model": ["m-1", "m-1", "m-2"]}
    )
    falls: Mapping[tuple[str, str], float] = field(default_factory=dict)
    probabilities: Sequence[float] = (1.0,)


def answers(traffic: Traffic, rng: random.Random) -> list[tuple[dict[str, str], float, float]]:
    """Labels, score and inclusion probability of each."""
    found = []
    for _ in range(traffic.n):
        labels = {name: rng.choice(values) for name, values in traffic.values.items()}
        mean = 0.92 - sum(traffic.falls.get(item, 0.0) for item in labels.items())
        statements = rng.randint(3, 5)
        score = sum(rng.random() < mean for _ in range(statements)) / statements
        found.append((labels, score, rng.choice(traffic.probabilities)))
    return found


def span(traffic: Traffic, rng: random.Random) -> SpanSums:
    sums = SpanSums()
    for at, (labels, score, probability) in enumerate(answers(traffic, rng)):
        sums.add(labels, score, 1.0 / probability, float(at))
    return sums
