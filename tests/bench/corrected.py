"""What the corrected score promises, by simulation; part of `tests.bench.statistics`.

Judges that err in their own ways, a window of 600 sampled answers, and labels of audited answers of the weeks before.
Beside it: the raw mean, and the power tuning of PPI++ (arXiv:2311.01453), which weighs the window by lambda in [0, 1].
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from metrics.correction import LabelledScore, Rectifier, corrected, rectifier
from tests.labelled_traffic import JUDGES, Drawn, draw, estimate, labelled_of

WINDOW = 600
LABELS = (50, 100, 300, 1000)
INCIDENT = 0.7
"""Share of good answers in an incident; judged as before, good and bad ones each."""


def corrected_scores(runs: int) -> bool:
    """Coverage, width and bias in every cell; then what is seen of an incident."""
    print(f"corrected scores, {runs} runs a cell: coverage; width; bias (of the raw mean); error beside PPI++ tuned")
    missed = 0
    for judge, design, share, labels in itertools.product(JUDGES, ("uniform", "stratified"), (0.95, 0.7), LABELS):
        rng = np.random.default_rng([11, *map(ord, judge + design), int(100 * share), labels])
        covered, widths, found, raw, tuned = 0, [], [], [], []
        for _ in range(runs):
            window = draw(share, JUDGES[judge], design, WINDOW, rng)
            known = draw(share, JUDGES[judge], design, labels, rng)
            mean, interval = estimate(window)
            by = _rectified(labelled_of(known))
            answer = corrected(mean, interval, by)
            covered += answer.low <= share <= answer.high
            widths.append(answer.high - answer.low)
            found.append(mean + by.mean)
            raw.append(mean)
            tuned.append(_tuned(mean, known))
        coverage, bias = covered / runs, float(np.mean(found)) - share
        biased = abs(bias) > max(0.003, 3 * float(np.std(found)) / math.sqrt(runs))
        marks = ["under" * (coverage < 0.93), "biased" * biased]
        missed += any(marks)
        print(
            f"{judge:8} {design:10} {share} {labels:5} labels  {coverage:.3f}  {np.mean(widths):.3f}  {bias:+.4f} "
            f"({np.mean(raw) - share:+.3f})  {_error(found, share) / _error(tuned, share):.2f}  "
            f"{' '.join(filter(None, marks))}",
            flush=True,
        )
    print(f"cells where something is missed: {missed}")
    print(f"an incident, {INCIDENT} of answers good in the window, 0.95 when 300 labels were given: mean estimate")
    for judge in JUDGES:
        rng = np.random.default_rng([12, *map(ord, judge)])
        seen = []
        for _ in range(runs):
            known = draw(0.95, JUDGES[judge], "uniform", 300, rng)
            mean, _ = estimate(draw(INCIDENT, JUDGES[judge], "uniform", WINDOW, rng))
            seen.append((mean, mean + _rectified(labelled_of(known)).mean, _tuned(mean, known)))
        raw_mean, ours, by_tuning = np.mean(seen, axis=0)
        print(f"{judge:8} raw {raw_mean:.3f}, corrected {ours:.3f}, tuned {by_tuning:.3f}", flush=True)
    return missed == 0


def _rectified(labelled: list[LabelledScore]) -> Rectifier:
    by = rectifier(labelled)
    assert by is not None
    return by


def _tuned(mean: float, known: Drawn) -> float:
    """The estimate of PPI++ with the best lambda in [0, 1] for these labels."""
    weight = (1.0 / known.probability) / (1.0 / known.probability).sum()
    score, good = float((weight * known.score).sum()), float((weight * known.good).sum())
    covariance = float((weight * (known.score - score) * (known.good - good)).sum())
    variance = float((weight * (known.score - score) ** 2).sum())
    tuning = covariance / (variance * (1.0 + len(known.score) / WINDOW)) if variance > 0.0 else 0.0
    return good + min(max(tuning, 0.0), 1.0) * (mean - score)


def _error(found: list[float], share: float) -> float:
    return float(np.sqrt(np.mean((np.array(found) - share) ** 2)))
