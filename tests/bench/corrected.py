"""What the corrected score promises, by simulation; part of `tests.bench.statistics`.

Judges that err in their own ways, a window of 600 sampled answers, and labels of audited answers of the weeks before.
Beside it: the raw mean, and the power tuning of PPI++ (arXiv:2311.01453), which weighs the window by lambda in [0, 1].
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from metrics.correction import LabelledScore, Rectifier, corrected, rectifier
from tests.labelled_traffic import JUDGES, Drawn, draw, estimate, labelled_of

WINDOW = 600
BAR = 0.93
LABELS = (50, 100, 300, 1000)
INCIDENT = 0.7
"""Share of good answers in an incident; judged as before, good and bad ones each."""


@dataclass(frozen=True)
class _Cell:
    labels: int
    coverage: float
    width: float
    bias: float
    raw: float
    error: float
    """Root-mean-square error, by that of the tuned estimate."""
    met: bool


def corrected_scores(runs: int) -> tuple[list[list[str]], bool]:
    """Coverage, width and bias by judge, sampling and share, over the numbers of labels; and whether 93 % are covered
    and no bias is seen in every cell."""
    rows = [
        ["judge", "sampling", "good", "raw mean", "coverage, least", "bias, most", "width, 50 and 1,000 labels",
         "error by the tuned, 50 and 1,000"],
    ]  # fmt: skip
    met = True
    for judge, design, share in itertools.product(JUDGES, ("uniform", "stratified"), (0.95, 0.7)):
        cells = [_cell(judge, design, share, labels, runs) for labels in LABELS]
        least, biased = min(cells, key=lambda c: c.coverage), max(cells, key=lambda c: abs(c.bias))
        first, last = cells[0], cells[-1]
        met &= all(cell.met for cell in cells)
        rows.append([
            judge, design, f"{share}", f"{share + first.raw:.3f}",
            f"{least.coverage:.1%} ({least.labels} labels)" if least.coverage >= BAR else f"**{least.coverage:.1%}**",
            f"{biased.bias:+.4f} ({biased.labels} labels)",
            f"{first.width:.3f}, {last.width:.3f}", f"{first.error:.2f}, {last.error:.2f}",
        ])  # fmt: skip
    return rows, met


def incidents(runs: int) -> list[list[str]]:
    """What is seen of an incident with the labels of before it: mean estimates by judge."""
    rows = [["judge", "raw", "corrected", "tuned"]]
    for judge in JUDGES:
        rng = np.random.default_rng([12, *map(ord, judge)])
        seen = []
        for _ in range(runs):
            known = draw(0.95, JUDGES[judge], "uniform", 300, rng)
            mean, _ = estimate(draw(INCIDENT, JUDGES[judge], "uniform", WINDOW, rng))
            seen.append((mean, mean + _rectified(labelled_of(known)).mean, _tuned(mean, known)))
        rows.append([judge, *(f"{each:.3f}" for each in np.mean(seen, axis=0))])
    return rows


def _cell(judge: str, design: str, share: float, labels: int, runs: int) -> _Cell:
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
    unbiased = abs(bias) <= max(0.002, 3 * float(np.std(found)) / math.sqrt(runs))
    return _Cell(
        labels,
        coverage,
        float(np.mean(widths)),
        bias,
        float(np.mean(raw)) - share,
        _error(found, share) / _error(tuned, share),
        coverage >= BAR and unbiased,
    )


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
