"""What intervals, drift and change detection promise, by simulation.

    python -m tests.bench.statistics [--only intervals,changes,drift,sketches,corrected] [--windows 2000] [--runs 40]
        [--days 120]

Prints one line a cell; exit code 1 where a target is missed. Fixed seeds: the same figures every time.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from metrics.detector import Detector
from metrics.drift import NullLevels, Sample, drift
from metrics.interval import score_interval
from metrics.ranges import SHARE, SIMILARITY, Range
from metrics.sketch_distance import sketch_distance
from tests.bench.corrected import corrected_scores
from tests.simulated_windows import DESIGNS, Cell, draw, moments_of
from tests.traffic_of_scores import DAY, Traffic, stream

Array = npt.NDArray[np.float64]
Ends = tuple[Array, Array]

Z95 = 1.959963984540054
SIZES = (20, 50, 100, 200, 500, 2000)
RESAMPLES = 500
FALSE_ALARM_SECONDS = 30 * DAY


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="intervals,changes,drift,sketches,corrected")
    arguments.add_argument("--windows", type=int, default=2000)
    arguments.add_argument("--runs", type=int, default=40)
    arguments.add_argument("--days", type=float, default=120.0)
    asked = arguments.parse_args()
    parts = {
        "intervals": lambda: intervals(asked.windows),
        "changes": lambda: changes(asked.runs, asked.days),
        "drift": lambda: drift_levels(asked.windows // 4),
        "sketches": lambda: sketch_levels(asked.windows // 4),
        "corrected": lambda: corrected_scores(asked.windows // 2),
    }
    return int(not min([parts[name]() for name in asked.only.split(",")]))


def intervals(windows: int) -> bool:
    """Coverage, width and bias in every cell, beside other intervals."""
    print(
        f"95 % intervals, {windows} windows a cell: coverage; width beside the narrowest other that covers 93 %; bias"
    )
    missed = 0
    for design, graded, mean, n in itertools.product(DESIGNS, (False, True), (0.95, 0.5), SIZES):
        cell = Cell(design, graded, mean, n)
        scores, weights = draw(cell, windows, np.random.default_rng([7, *_digits(cell)]))
        sums = moments_of(scores, weights)
        ours = [score_interval(each, 0.0, 1.0) for each in sums]
        coverage, width = _judged((np.array([i.low for i in ours]), np.array([i.high for i in ours])), mean)
        kish = float(np.mean([each.kish for each in sums]))
        others = {name: _judged(ends, mean) for name, ends in _others(scores, weights).items()}
        fit = {name: wide for name, (covered, wide) in others.items() if covered >= 0.93}
        best = min(fit, key=lambda name: fit[name], default="none")
        ratio = width / fit[best] if fit else float("nan")
        means = np.array([each.mean for each in sums])
        bias, error = float(means.mean()) - mean, float(means.std() / np.sqrt(windows))
        marks = [
            "under" * (coverage < 0.93),
            "over" * (coverage > 0.975 and kish >= 100),
            "wide" * (ratio > 1.15),
            "biased" * (abs(bias) > max(0.002, 3 * error)),
        ]
        missed += any(marks)
        print(
            f"{cell!s:38} effective {kish:5.0f}  {coverage:.3f}  x {ratio:.2f} ({best} {others.get(best, (0,))[0]:.3f})"
            f"  {bias:+.4f}  {' '.join(filter(None, marks))}",
            flush=True,
        )
    print(f"cells where something is missed: {missed}")
    return missed == 0


def _digits(cell: Cell) -> tuple[int, ...]:
    return DESIGNS.index(cell.design), int(cell.graded), int(cell.mean * 100), cell.n


def _judged(ends: Ends, mean: float) -> tuple[float, float]:
    low, high = np.nan_to_num(ends[0]), np.nan_to_num(ends[1], nan=1.0)
    return float(((low <= mean) & (mean <= high)).mean()), float((high - low).mean())


def _others(scores: Array, weights: Array) -> dict[str, Ends]:
    """Wilson, Jeffreys and Clopper-Pearson, each on Kish's n, on Kish's n by the ratio of variances, and on the n that
    the weighted variance of the mean implies; and the percentile bootstrap."""
    total = weights.sum(axis=1)
    mean = np.clip((weights * scores).sum(axis=1) / total, 0.0, 1.0)
    yes_no = mean * (1.0 - mean)
    kish = total**2 / (weights**2).sum(axis=1)
    squares = ((weights * (scores - mean[:, None])) ** 2).sum(axis=1) / total**2
    with np.errstate(all="ignore"):
        ratio = np.where(yes_no > 0.0, yes_no / scores.var(axis=1, ddof=1), 1.0)
        linear = np.where(squares > 1e-15, yes_no / squares, kish)
    sizes = {
        "Kish": kish,
        "Kish x ratio": np.clip(kish * ratio, 0.1 * kish, 1e9),
        "weighted": np.clip(linear, 1e-3, 1e9),
    }
    found: dict[str, Ends] = {}
    for name, n in sizes.items():
        found[f"Wilson {name}"] = _wilson(mean, n)
        found[f"Jeffreys {name}"] = _jeffreys(mean, n)
        found[f"Clopper-Pearson {name}"] = _clopper_pearson(mean, n)
    found["bootstrap"] = _bootstrap(scores, weights)
    return found


def _wilson(p: Array, n: Array) -> Ends:
    square = Z95 * Z95
    centre, scale = p + square / (2 * n), 1 + square / n
    half = Z95 * np.sqrt(p * (1 - p) / n + square / (4 * n * n))
    return np.maximum((centre - half) / scale, 0.0), np.minimum((centre + half) / scale, 1.0)


def _jeffreys(p: Array, n: Array) -> Ends:
    yes, no = p * n + 0.5, (1 - p) * n + 0.5
    low, high = np.where(p <= 0, 0.0, beta.ppf(0.025, yes, no)), np.where(p >= 1, 1.0, beta.ppf(0.975, yes, no))
    return low, high


def _clopper_pearson(p: Array, n: Array) -> Ends:
    yes, no = p * n, (1 - p) * n
    low = np.where(yes < 1e-9, 0.0, beta.ppf(0.025, np.maximum(yes, 1e-9), no + 1))
    return low, np.where(no < 1e-9, 1.0, beta.ppf(0.975, yes + 1, np.maximum(no, 1e-9)))


def _bootstrap(scores: Array, weights: Array) -> Ends:
    n = scores.shape[1]
    counts = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).T.astype(np.float64)
    means = (weights * scores) @ counts / (weights @ counts)
    return np.quantile(means, 0.025, axis=1), np.quantile(means, 0.975, axis=1)


def changes(runs: int, days: float) -> bool:
    """False alarms on stationary traffic, and how soon a fall is found."""
    good = True
    print(f"false alarms, of one a month expected: {runs} runs of {days:g} days")
    unequal = (1.0, 0.2, 0.05)
    stationary = {
        "60/h, volume 0.2 to 1.8": Traffic(),
        "60/h, and mean +-0.02 over the day": Traffic(rhythm=0.02),
        "60/h, and mean +-0.04 over the day": Traffic(rhythm=0.04),
        "60/h, probabilities 1, 0.2 and 0.05": Traffic(rhythm=0.02, probabilities=unequal),
        "10/h": Traffic(per_hour=10.0, rhythm=0.02),
    }
    for name, traffic in stationary.items():
        alarms = 0
        for run in range(runs):
            detector = Detector(0.0, 1.0)
            for scores in stream(traffic, days, 3600.0, np.random.default_rng([5, run])):
                alarms += len(detector.take(scores, FALSE_ALARM_SECONDS))
        months = runs * days / 30.0
        rate = alarms / months
        met = 1 / 1.5 <= rate <= 1.5
        good &= met
        print(
            f"{name:38} {alarms} in {months:.0f} months: {rate:.2f} of the configured rate  {'' if met else 'MISSED'}"
        )
    print("a fall from 0.92 to 0.82 at 60 scores an hour, after so many days of traffic: found within 2 h")
    for name, traffic in (("one probability", Traffic(volume=0.0)), ("mean +-0.02", Traffic(volume=0.0, rhythm=0.02))):
        for learned in (1, 2, 7):
            delays = [_delay(traffic, learned, run) for run in range(5 * runs)]
            share = float(np.mean([delay <= 7200.0 for delay in delays]))
            good &= share >= 0.9
            print(
                f"{name}, {learned} days: {share:.3f}; median {np.median(delays) / 60:.0f} min  "
                f"{'' if share >= 0.9 else 'MISSED'}"
            )
    return good


def _delay(traffic: Traffic, learned: int, run: int) -> float:
    """Seconds from the fall to the first alarm after it."""
    rng = np.random.default_rng([6, run])
    at = (learned + rng.random()) * DAY
    fall = Traffic(traffic.per_hour, traffic.mean, traffic.volume, traffic.rhythm, change_at=at, change=-0.1)
    detector = Detector(0.0, 1.0)
    for scores in stream(fall, learned + 1.5, 900.0, rng):
        for shift in detector.take(scores, FALSE_ALARM_SECONDS):
            if shift.found >= at:
                return shift.found - at
    return float("inf")


def drift_levels(trials: int) -> bool:
    """How often a statistic is above its null level without drift: 1 in 100 is meant."""
    print(f"drift without drift: share above drift_null_high, {trials} trials (1 % is meant, at most 3 % allowed)")
    null, good = NullLevels(), True
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
        good &= bool((shares <= 0.03).all())
        print(f"{name} n={n} against m={m}: psi {shares[0]:.3f}, ks {shares[1]:.3f}, wasserstein {shares[2]:.3f}")
    return good


def _sample(range_: Range, rng: np.random.Generator, n: int, weights: Array) -> Sample:
    scores = rng.binomial(4, 0.92, n) / 4 if range_ is SHARE else np.clip(rng.normal(0.85, 0.05, n), -1.0, 1.0)
    masses = np.bincount([range_.bin_of(float(score)) for score in scores], weights, range_.bins)
    return Sample(masses, n, float(weights.sum() ** 2 / (weights**2).sum()))


def sketch_levels(trials: int) -> bool:
    """The same for sketches of questions about five topics; and how often a sixth topic is seen."""
    print(f"sketches: share above the null level, {trials} trials, without and with a tenth about a new topic")
    good = True
    for n, m in ((50, 512), (100, 100), (256, 256), (256, 512)):
        rng = np.random.default_rng([9, n, m])
        topics = rng.standard_normal((6, 32)) * 0.1
        above = np.zeros(2)
        for _ in range(trials):
            reference = _points(rng, topics[:5], m)
            for place, new in enumerate((0, n // 10)):
                recent = np.concatenate([_points(rng, topics[:5], n - new), _points(rng, topics[5:], new)])
                found = sketch_distance(recent, reference)
                assert found is not None
                above[place] += found.mmd > found.null_high
        good &= bool(above[0] / trials <= 0.03)
        print(f"n={n} against m={m}: {above[0] / trials:.3f} without, {above[1] / trials:.3f} with")
    return good


def _points(rng: np.random.Generator, topics: Array, n: int) -> npt.NDArray[np.float32]:
    points = topics[rng.integers(0, len(topics), n)] + 0.06 * rng.standard_normal((n, 32)) + 0.1
    return np.asarray(points, np.float32)


if __name__ == "__main__":
    began = time.process_time()
    code = main()
    print(f"{time.process_time() - began:.0f} s of processor time")
    sys.exit(code)
