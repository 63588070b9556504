"""Thresholds from validated answers: by the share of good ones that may be flagged, or, where bad ones are known, by a
trade-off between what is found and what is flagged wrongly.

A threshold is a cut: scores below it are flagged. The stream flags `score < threshold - 0.001`, so the stored threshold
lies 0.001 above the cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.agreement import auroc_estimate
from metrics.baseline import Method, Operating
from metrics.flags import MARGIN
from metrics.interval import Moments, score_interval

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ALARMS = 0.05
"""Share of good answers that may be flagged, unless the caller says otherwise."""
FEWEST_BAD = 10
"""Below this many bad answers no trade-off is looked for."""
FOLDS = 10
_HALF_STEP = 1e-6
"""Thresholds are kept to six digits; so much lower they are put, so that rounding never flags the cut itself."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How to choose. `target`: of `false_alarms`, `precision` and `recall`; None for `balanced` and `f1`."""

    method: Method
    target: float | None = None

    def __str__(self) -> str:
        name = self.method.replace("_", "-")
        return name if self.target is None else f"{name}={self.target:g}"


@dataclass(frozen=True, slots=True)
class Answers:
    """Scores of validated answers; `folds` (0 to 9, by hash of the id) say which are set aside together."""

    scores: Floats
    folds: Integers


@dataclass(frozen=True, slots=True)
class Chosen:
    value: float
    rule: Rule
    operating: Operating


@dataclass(frozen=True, slots=True)
class NotChosen:
    """Why there is no threshold, as a half sentence for people."""

    why: str


def parse_rule(text: str) -> Rule:
    """`balanced`, `f1`, `precision=0.9`, `recall=0.8` or `false-alarms=0.05`.

    Raises:
        ValueError: anything else.
    """
    name, equals, raw = text.strip().partition("=")
    if not equals and name == "balanced":
        return Rule("balanced")
    if not equals and name == "f1":
        return Rule("f1")
    try:
        target = float(raw)
    except ValueError:
        target = math.nan
    if 0.0 < target < 1.0:
        if name == "precision":
            return Rule("precision", target)
        if name == "recall":
            return Rule("recall", target)
        if name == "false-alarms":
            return Rule("false_alarms", target)
    raise ValueError(
        f"{text!r}: give balanced, f1, precision=SHARE, recall=SHARE or false-alarms=SHARE, SHARE between 0 and 1"
    )


def choose(
    good: Answers, bad: Answers, rule: Rule, alarms: float, bad_share: float | None, high: float
) -> Chosen | NotChosen:
    """The threshold for one metric in one segment.

    A trade-off needs at least 10 bad answers, and a metric that tells them from the good ones (the 95 % interval of
    its AUROC lies above 0.5); elsewhere the threshold comes from the good answers alone, by `alarms`.

    Args:
        bad: May be empty.
        alarms: The share of false alarms for metrics that a trade-off is not possible for.
        bad_share: The share of bad answers among all that precision is computed for; None: as in these sets.
        high: The upper end of the metric's range; a threshold never lies above it.
    """
    n_good, n_bad = len(good.scores), len(bad.scores)
    told = auroc_estimate(good.scores, bad.scores) if min(n_good, n_bad) >= 2 else None
    tells = told is not None and n_bad >= FEWEST_BAD and told.above(0.5)
    if rule.method != "false_alarms" and not tells:
        rule = Rule("false_alarms", alarms)
    share = bad_share if bad_share is not None else n_bad / max(n_good + n_bad, 1)
    found = _cut(good.scores, bad.scores, rule, share)
    if isinstance(found, NotChosen):
        return found
    value = min(round(found + MARGIN - _HALF_STEP, 6), high)
    return Chosen(value, rule, _operating(good, bad, rule, share, value, None if told is None else told.value))


def _cut(good: Floats, bad: Floats, rule: Rule, bad_share: float) -> float | NotChosen:
    if rule.method == "false_alarms":
        return _by_false_alarms(good, rule.target or ALARMS)
    cuts = _cuts(good, bad)
    alarms, recall = _shares_below(good, cuts), _shares_below(bad, cuts)
    precision = _precision(recall, alarms, len(good), bad_share)
    match rule.method:
        case "balanced":
            return _first_best(cuts, recall - alarms, alarms)
        case "f1":
            f1 = np.divide(2.0 * precision * recall, precision + recall, out=np.zeros_like(recall), where=recall > 0.0)
            return _first_best(cuts, f1, alarms)
        case "recall":
            fits = recall >= (rule.target or 0.0) - 1e-9
            return _first_best(cuts[fits], -alarms[fits], alarms[fits])
        case "precision":
            fits = (precision >= (rule.target or 0.0) - 1e-9) & (recall > 0.0)
            if not fits.any():
                return NotChosen(f"no threshold has a precision of {rule.target:g} (the best is {precision.max():.2f})")
            return _first_best(cuts[fits], recall[fits], alarms[fits])


def _by_false_alarms(good: Floats, alarms: float) -> float | NotChosen:
    """The k-th smallest of n good scores, k = floor(alarms * (n + 1)). A further good answer of the same kind scores
    below it with a chance of at most k / (n + 1), whatever the distribution (split conformal prediction: Vovk,
    Gammerman & Shafer, Algorithmic Learning in a Random World, 2005)."""
    n = len(good)
    k = math.floor(alarms * (n + 1) + 1e-9)
    if k < 1:
        needed = math.ceil(1.0 / alarms - 1e-9) - 1
        return NotChosen(f"{n} good answers are too few for {alarms:.3g} false alarms: at least {needed} are needed")
    return float(np.partition(good, k - 1)[k - 1])


def _cuts(good: Floats, bad: Floats) -> Floats:
    """Every cut that flags another set of answers: half-way between neighbouring scores, and above the highest."""
    scores = np.unique(np.concatenate([good, bad]))
    return np.append((scores[:-1] + scores[1:]) / 2.0, scores[-1] + 2.0 * MARGIN)


def _shares_below(scores: Floats, cuts: Floats) -> Floats:
    return np.asarray(np.searchsorted(np.sort(scores), cuts) / max(len(scores), 1), np.float64)


def _precision(recall: Floats, alarms: Floats, n_good: int, bad_share: float) -> Floats:
    """Share of bad answers among the flagged, where they are `bad_share` of all. One false alarm more is counted than
    was seen: that none of a few hundred good answers was flagged does not make a precision of 1."""
    prudent = (alarms * n_good + 1.0) / (n_good + 1.0)
    flagged = bad_share * recall + (1.0 - bad_share) * prudent
    return np.divide(bad_share * recall, flagged, out=np.zeros_like(recall), where=flagged > 0.0)


def _first_best(cuts: Floats, worth: Floats, alarms: Floats) -> float:
    """Of the cuts of greatest worth the one with the fewest false alarms."""
    best = np.flatnonzero(worth >= worth.max() - 1e-12)
    return float(cuts[best[np.argmin(alarms[best])]])


def _operating(
    good: Answers, bad: Answers, rule: Rule, bad_share: float, value: float, told: float | None
) -> Operating:
    n_good, n_bad = len(good.scores), len(bad.scores)
    alarms = float((good.scores < value - MARGIN).mean())
    hits = alarms * n_good
    interval = score_interval(Moments(n_good, n_good, n_good, hits, hits, hits), 0.0, 1.0)
    held_good, held_bad = _held_out(good, bad, rule, bad_share)
    recall = precision = None
    if n_bad:
        recall = float((bad.scores < value - MARGIN).mean())
        precision = float(_precision(np.array(recall), np.array(alarms), n_good, bad_share))
    return Operating(
        n_good=n_good,
        n_bad=n_bad,
        false_alarms=alarms,
        false_alarms_low=interval.low,
        false_alarms_high=interval.high,
        recall=recall,
        precision=precision,
        bad_share=bad_share if n_bad else None,
        auroc=told,
        held_out_recall=held_bad,
        held_out_false_alarms=held_good,
    )


def _held_out(good: Answers, bad: Answers, rule: Rule, bad_share: float) -> tuple[float | None, float | None]:
    """(false alarms, recall) where every fold is flagged by the cut of the others; None where a cut is missing."""
    flagged_good, flagged_bad = 0, 0
    for fold in range(FOLDS):
        aside_good, aside_bad = good.folds == fold, bad.folds == fold
        if not aside_good.any() and not aside_bad.any():
            continue
        rest_good, rest_bad = good.scores[~aside_good], bad.scores[~aside_bad]
        if not len(rest_good) or (rule.method != "false_alarms" and not len(rest_bad)):
            return None, None
        cut = _cut(rest_good, rest_bad, rule, bad_share)
        if isinstance(cut, NotChosen):
            return None, None
        flagged_good += int((good.scores[aside_good] < cut - _HALF_STEP).sum())
        flagged_bad += int((bad.scores[aside_bad] < cut - _HALF_STEP).sum())
    n_bad = len(bad.scores)
    return flagged_good / len(good.scores), flagged_bad / n_bad if n_bad else None
