"""What intervals, means, contrasts, change detection and drift promise, by simulation.

    python -m tests.bench.statistics [--only intervals,policies,contrasts,changes,drift,sketches,corrected,incidents]
        [--out PAGE]

Prints a table for each part, or puts it into PAGE (docs/statistics.md); exit code 1 where a
bar is missed. Fixed seeds: the same figures every time. `intervals` takes half a minute of one core, `changes` three.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.contrast import contrast
from metrics.detector import Detector
from metrics.drift import NullLevels, Sample, drift
from metrics.ranges import SHARE, SIMILARITY, Range
from metrics.sketch_distance import sketch_distance
from tests.bench.corrected import corrected_scores, incidents
from tests.bench.pages import put_table
from tests.contrasted_spans import Traffic as Labelled
from tests.contrasted_spans import span
from tests.simulated_intervals import coverage_and_width, rivals, score_intervals
from tests.simulated_windows import BARRED, DESIGNS, POLICIES, Cell, draw, draw_policy, draw_sums
from tests.traffic_of_scores import DAY, Traffic, stream

Array = npt.NDArray[np.float64]

SIZES = (20, 50, 100, 200, 500, 2000)
FALSE_ALARM_SECONDS = 30 * DAY
PORTION_SECONDS = DAY / 2.0
"""Of stationary traffic; alarm levels are set anew between portions only."""


@dataclass(frozen=True)
class Found:
    """A table of figures, and whether every bar was met."""

    rows: Sequence[Sequence[str]]
    met: bool

    @property
    def table(self) -> str:
        head, *rows = self.rows
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
        return "\n".join(lines)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="intervals,policies,contrasts,changes,drift,sketches,corrected,incidents")
    arguments.add_argument("--windows", type=int, default=2000)
    arguments.add_argument("--runs", type=int, default=38)
    arguments.add_argument("--days", type=float, default=60.0)
    arguments.add_argument("--workers", type=int, default=2, help="Processes, for the changes.")
    arguments.add_argument("--out", type=Path)
    asked = arguments.parse_args()
    parts: dict[str, Callable[[], Found]] = {
        "intervals": lambda: intervals(asked.windows),
        "policies": lambda: policies(10 * asked.windows),
        "contrasts": lambda: contrasts(asked.windows // 5),
        "changes": lambda: changes(asked.runs, asked.days, asked.workers),
        "drift": lambda: drift_levels(asked.windows // 4),
        "sketches": lambda: sketch_levels(asked.windows // 4),
        "corrected": lambda: Found(*corrected_scores(asked.windows // 2)),
        "incidents": lambda: Found(incidents(asked.windows // 2), True),
    }
    met = True
    for name in asked.only.split(","):
        began = time.process_time()
        found = parts[name]()
        met &= found.met
        put_table(
            asked.out,
            f"<!-- table: python -m tests.bench.statistics --only {name} -->",
            found.table,
            f"<!-- end of {name} -->",
        )
        verdict = "every bar met" if found.met else "a bar MISSED"
        print(f"{name}: {verdict}; {time.process_time() - began:.0f} s of processor time", file=sys.stderr, flush=True)
    return int(not met)


def intervals(windows: int) -> Found:
    """Coverage, width and bias, the worst over n of each kind of cell, and where it is."""
    rows = [
        ["sampling", "scores", "mean", "coverage, least", "most where effective n >= 100",
         "width by the narrowest other, most", "bias, most"],
    ]  # fmt: skip
    met = True
    for design, graded, mean in itertools.product(DESIGNS, (False, True), (0.95, 0.5)):
        cells = [_cell(Cell(design, graded, mean, n), windows) for n in SIZES]
        least = min(cells, key=lambda c: c.coverage)
        large = [c.coverage for c in cells if c.kish >= 100.0]
        widest, biased = max(cells, key=lambda c: c.ratio), max(cells, key=lambda c: abs(c.bias) / c.allowed)
        met &= design not in BARRED or all(c.met for c in cells)
        rows.append([
            design.replace("_", ", "), "graded" if graded else "yes/no", f"{mean}",
            f"{_marked(least.coverage >= 0.93, f'{least.coverage:.1%}')} (n = {least.n})",
            _marked(max(large) <= 0.975, f"{max(large):.1%}"),
            f"{_marked(widest.ratio <= 1.15, f'{widest.ratio:.2f}')} (n = {widest.n}, {widest.rival})",
            f"{_marked(abs(biased.bias) <= biased.allowed, f'{biased.bias:+.4f}')} (n = {biased.n})",
        ])  # fmt: skip
    return Found(rows, met)


@dataclass(frozen=True)
class _Judged:
    n: int
    kish: float
    coverage: float
    ratio: float
    rival: str
    bias: float
    allowed: float

    @property
    def met(self) -> bool:
        over = self.kish >= 100.0 and self.coverage > 0.975
        return self.coverage >= 0.93 and not over and self.ratio <= 1.15 and abs(self.bias) <= self.allowed


def _cell(cell: Cell, windows: int) -> _Judged:
    scores, weights = draw(cell, windows, np.random.default_rng([7, *_digits(cell)]))
    coverage, width = coverage_and_width(score_intervals(scores, weights), cell.mean)
    others = {name: coverage_and_width(ends, cell.mean) for name, ends in rivals(scores, weights).items()}
    fit = {name: wide for name, (covered, wide) in others.items() if covered >= 0.93}
    best = min(fit, key=lambda name: fit[name], default="none keeps 93 %")
    total = weights.sum(axis=1)
    means = (weights * scores).sum(axis=1) / total
    kish = float((total**2 / (weights**2).sum(axis=1)).mean())
    allowed = max(0.002, 3.0 * float(means.std()) / windows**0.5)
    found = _Judged(
        cell.n, kish, coverage, width / fit[best] if fit else 0.0, best, float(means.mean()) - cell.mean, allowed
    )
    print(f"{cell!s:40} {found}", file=sys.stderr, flush=True)
    return found


def _digits(cell: Cell) -> tuple[int, ...]:
    return DESIGNS.index(cell.design), int(cell.graded), int(cell.mean * 100), cell.n


def _marked(met: bool, text: str) -> str:
    return text if met else f"**{text}**"


def policies(windows: int) -> Found:
    """How far the mean is off under policies that settings can make, beside how far it scatters; and the same of sums
    divided by the known number of events."""
    rows = [[
        "policy", "n", "effective n", "bias", "three standard errors of 2,000 windows", "bias where n is by chance",
        "bias over windows weighted by their events", "standard deviation", "standard deviation of Σ(s/p) / events",
        "coverage",
    ]]  # fmt: skip
    met = True
    for policy, n in itertools.product(POLICIES, (20, 50, 100, 200)):
        scores, weights = draw_policy(policy, n, windows, np.random.default_rng([10, n]))
        total = weights.sum(axis=1)
        means = (weights * scores).sum(axis=1) / total
        bias, spread = float(means.mean()) - policy.mean, float(means.std())
        pooled = float((weights * scores).sum() / total.sum()) - policy.mean
        coverage, _ = coverage_and_width(score_intervals(scores, weights), policy.mean)
        kish = float((total**2 / (weights**2).sum(axis=1)).mean())
        sums, sizes, events, mean = draw_sums(policy, n, windows, np.random.default_rng([12, n]))
        some = sizes > 0.0
        by_chance = float((sums[some] / sizes[some]).mean()) - mean
        errors = 3.0 * spread / 2000.0**0.5
        good = abs(bias) <= max(0.002, errors)
        met &= good
        rows.append([
            policy.name, str(n), f"{kish:.0f}", _marked(good, f"{bias:+.4f}"), f"{errors:.4f}", f"{by_chance:+.4f}",
            f"{pooled:+.4f}", f"{spread:.4f}", f"{(sums / events).std():.4f}",
            _marked(coverage >= 0.93, f"{coverage:.1%}"),
        ])  # fmt: skip
    return Found(rows, met)


def contrasts(runs: int) -> Found:
    """How often something is named, and how often what was planted."""
    calm = Labelled(300)
    kinds = {
        "no cause": (calm, Labelled(100), None),
        "no cause, 40 scores after": (calm, Labelled(40), None),
        "no cause, probabilities 1, 0.2 and 0.05": (
            replace(calm, probabilities=(1.0, 0.2, 0.05)), Labelled(100, probabilities=(1.0, 0.2, 0.05)), None,
        ),
        "everything falls by 0.1": (calm, Labelled(100, falls={("lang", "en"): 0.1, ("lang", "zh"): 0.1}), None),
        "one language falls by 0.2": (calm, Labelled(100, falls={("lang", "zh"): 0.2}), "zh"),
        "one language falls by 0.2, 40 scores after": (calm, Labelled(40, falls={("lang", "zh"): 0.2}), "zh"),
        "a new model in place of another, worse by 0.1": (
            replace(calm, values={**calm.values, "model": ["m-1"]}),
            Labelled(100, {**calm.values, "model": ["m-3"]}, {("model", "m-3"): 0.1}),
            "m-3",
        ),
    }  # fmt: skip
    rows = [
        ["300 scores before, 100 after; labels of 2, 3 and 2 values", "the cause is named", "anything else is named"]
    ]
    met = True
    for number, (name, (before, after, cause)) in enumerate(kinds.items()):
        rng = random.Random(100 + number)
        named = wrong = 0
        for _ in range(runs):
            found = contrast(span(before, rng), span(after, rng), 0.0, 1.0).named
            named += any(cause in part.values for part in found)
            wrong += any(cause not in part.values for part in found)
        if cause is None:
            met &= wrong <= 0.05 * runs + 3.0 * (0.05 * 0.95 * runs) ** 0.5
        rows.append([name, f"{named / runs:.1%}" if cause else "-", f"{wrong / runs:.1%}"])
    return Found(rows, met)


def changes(runs: int, days: float, workers: int) -> Found:
    """False alarms on stationary traffic, and how soon a fall is found."""
    rows = [["traffic", "figure", "the bar"]]
    met = True
    unequal = (1.0, 0.2, 0.05)
    stationary = {
        "60/h, volume 0.2 to 1.8 over the day": Traffic(),
        "60/h, and mean +-0.02 over the day": Traffic(rhythm=0.02),
        "60/h, and mean +-0.04 over the day": Traffic(rhythm=0.04),
        "60/h, +-0.02, probabilities 1, 0.2 and 0.05": Traffic(rhythm=0.02, probabilities=unequal),
        "10/h, +-0.02": Traffic(per_hour=10.0, rhythm=0.02),
    }
    months = runs * days / 30.0
    falls = list(itertools.product((0.0, 0.02, 0.04), (1, 7)))
    with ProcessPoolExecutor(workers) as pool:
        counted = {
            name: [pool.submit(_alarms, traffic, days, run) for run in range(runs)]
            for name, traffic in stationary.items()
        }
        delayed = {
            (rhythm, learned): [
                pool.submit(_delay, Traffic(volume=0.0, rhythm=rhythm), learned, run) for run in range(runs)
            ]
            for rhythm, learned in falls
        }
    for name in stationary:
        alarms = sum(each.result() for each in counted[name])
        rate = alarms / months
        good = 1 / 1.5 <= rate <= 1.5
        met &= good
        figure = f"{alarms} false alarms in {months:.0f} months, {months:.0f} expected: {rate:.2f}"
        rows.append([name, _marked(good, figure), "0.67 to 1.5"])
        print(rows[-1], file=sys.stderr, flush=True)
    for rhythm, learned in falls:
        delays = np.array([each.result() for each in delayed[rhythm, learned]])
        share = float((delays <= 7200.0).mean())
        met &= share >= 0.9
        figure = f"found within 2 h in {share:.1%} of {len(delays)} runs; median {np.median(delays) / 60:.0f} min"
        name = f"0.92 to 0.82 after {learned} {'day' if learned == 1 else 'days'}, 60/h, mean +-{rhythm:g}"
        rows.append([name, _marked(share >= 0.9, figure), "90 %"])
        print(rows[-1], file=sys.stderr, flush=True)
    return Found(rows, met)


def _alarms(traffic: Traffic, days: float, run: int) -> int:
    detector = Detector(0.0, 1.0)
    portions = stream(traffic, days, PORTION_SECONDS, np.random.default_rng([5, run]))
    return sum(len(detector.take(scores, FALSE_ALARM_SECONDS)) for scores in portions)


def _delay(traffic: Traffic, learned: int, run: int) -> float:
    """Seconds from the fall to the first alarm after it."""
    rng = np.random.default_rng([6, run])
    at = (learned + rng.random()) * DAY
    fall = replace(traffic, change_at=at, change=-0.1)
    detector = Detector(0.0, 1.0)
    for scores in stream(fall, learned + 1.5, 900.0, rng):
        for shift in detector.take(scores, FALSE_ALARM_SECONDS):
            if shift.found >= at:
                return shift.found - at
    return float("inf")


def drift_levels(trials: int) -> Found:
    """How often a statistic is above its null level without drift: 1 in 100 is meant, at most 3 allowed."""
    null, met = NullLevels(), True
    rows = [["scores", "n", "against", "psi", "ks", "wasserstein"]]
    for (name, range_), n, m in itertools.product(
        (("graded 0.92", SHARE), ("cosine 0.85", SIMILARITY)), (50, 200, 2000), (50, 500)
    ):
        rng = np.random.default_rng([8, n, m])
        above = np.zeros(3)
        for _ in range(trials):
            one = _sample(range_, rng, n, 1.0 / rng.choice([1.0, 0.2, 0.05], n))
            other = _sample(range_, rng, m, np.ones(m))
            found, high = drift(one, other, range_), null.of(one, other, range_)
            above += [found.psi > high.psi, found.ks > high.ks, found.wasserstein > high.wasserstein]
        shares = above / trials
        met &= bool((shares <= 0.03).all())
        rows.append([name, str(n), str(m), *(_marked(share <= 0.03, f"{share:.1%}") for share in shares)])
    return Found(rows, met)


def _sample(range_: Range, rng: np.random.Generator, n: int, weights: Array) -> Sample:
    scores = rng.binomial(4, 0.92, n) / 4 if range_ is SHARE else np.clip(rng.normal(0.85, 0.05, n), -1.0, 1.0)
    masses = np.bincount([range_.bin_of(float(score)) for score in scores], weights, range_.bins)
    return Sample(masses, n, float(weights.sum() ** 2 / (weights**2).sum()))


def sketch_levels(trials: int) -> Found:
    """The same for sketches of questions about five topics; and how often a sixth topic is seen."""
    rows, met = [["sketches", "against", "without drift", "a tenth about a new topic", "a fifth"]], True
    for n, m in ((50, 512), (100, 100), (256, 256), (256, 512)):
        rng = np.random.default_rng([9, n, m])
        topics = rng.standard_normal((6, 32)) * 0.1
        above = np.zeros(3)
        for _ in range(trials):
            reference = _points(rng, topics[:5], m)
            for place, new in enumerate((0, n // 10, n // 5)):
                recent = np.concatenate([_points(rng, topics[:5], n - new), _points(rng, topics[5:], new)])
                found = sketch_distance(recent, reference)
                assert found is not None
                above[place] += found.mmd > found.null_high
        shares = above / trials
        met &= bool(shares[0] <= 0.03)
        rows.append([str(n), str(m), _marked(shares[0] <= 0.03, f"{shares[0]:.1%}"), *(f"{s:.0%}" for s in shares[1:])])
    return Found(rows, met)


def _points(rng: np.random.Generator, topics: Array, n: int) -> npt.NDArray[np.float32]:
    points = topics[rng.integers(0, len(topics), n)] + 0.06 * rng.standard_normal((n, 32)) + 0.1
    return np.asarray(points, np.float32)


if __name__ == "__main__":
    sys.exit(main())
