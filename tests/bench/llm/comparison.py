"""Two judges over the same labelled cases: balanced accuracy, its paired difference, tokens."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.bench.llm.cases import Case

Bools = npt.NDArray[np.bool_]
THRESHOLD = 0.75
"""An answer is called faithful if its score is at least this: the product's own default of `thresholds.default`."""
FAULTS = frozenset({"judge_timeout", "judge_busy", "judge_error"})
"""Reasons that speak of the server and not of the judge: such a result is not kept, the next run asks again."""
RESAMPLES = 10_000
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Result:
    """What one judge made of one case; tokens as the server counted them, over all calls, retries among them."""

    case: str
    judge: str
    score: float | None
    unscored: str | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    statements: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def append(path: Path, result: Result) -> None:
    """A line as soon as there is one, so that an interrupted run goes on where it was."""
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")


def read(path: Path) -> dict[str, Result]:
    """By case; a file that is not there yet is empty."""
    if not path.exists():
        return {}
    raws: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = Result.__dataclass_fields__
    return {raw["case"]: Result(**{k: v for k, v in raw.items() if k in names}) for raw in raws}


def right(cases: Sequence[Case], results: Mapping[str, Result], thresholds: Sequence[float]) -> Bools:
    """Case by case whether the judge told it right; a case without a score is wrong."""
    told = []
    for case, threshold in zip(cases, thresholds, strict=True):
        score = results[case.id].score
        told.append(score is not None and (score >= threshold) == bool(case.label))
    return np.array(told, dtype=bool)


def balanced_accuracy(labels: Bools, told_right: Bools) -> float:
    """Mean of the share of supported and of unsupported cases that were told right."""
    return float((told_right[labels].mean() + told_right[~labels].mean()) / 2)


def held_out_thresholds(cases: Sequence[Case], results: Mapping[str, Result]) -> list[float]:
    """For every case the threshold that was best on the cases of the other folds; folds by group."""
    folds = np.array([int(hashlib.sha256(f"{c.set}/{c.group}".encode()).hexdigest()[:8], 16) % FOLDS for c in cases])
    labels = np.array([bool(case.label) for case in cases])
    known = sorted({score for case in cases if (score := results[case.id].score) is not None})
    candidates = [0.0, *((low + high) / 2 for low, high in pairwise(known)), 1.0 + 1e-9]
    chosen = []
    for fold in range(FOLDS):
        rest = np.flatnonzero(folds != fold)
        others = [cases[k] for k in rest]
        accuracies = [balanced_accuracy(labels[rest], right(others, results, [t] * len(others))) for t in candidates]
        chosen.append(candidates[int(np.argmax(accuracies))])
    return [chosen[fold] for fold in folds]


def difference(cases: Sequence[Case], mine: Bools, theirs: Bools, seed: int = 20261130) -> tuple[float, float, float]:
    """Balanced accuracy of mine less theirs with its 95 % interval: bootstrap over cases, within set and label."""
    strata: dict[tuple[str, int], list[int]] = {}
    for k, case in enumerate(cases):
        strata.setdefault((case.set, case.label), []).append(k)
    labels = np.array([bool(case.label) for case in cases])
    gain = mine.astype(float) - theirs.astype(float)
    weight = np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum())
    rng = np.random.default_rng(seed)
    drawn = np.zeros(RESAMPLES)
    for members in strata.values():
        at = np.array(members)
        picks = rng.integers(0, len(at), (RESAMPLES, len(at)))
        drawn += (gain * weight)[at][picks].sum(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float((gain * weight).sum()), float(low), float(high)


def report(cases: Sequence[Case], mine: Mapping[str, Result], theirs: Mapping[str, Result]) -> str:
    """The table of docs/judges.md."""
    labels = np.array([bool(case.label) for case in cases])
    fixed = [THRESHOLD] * len(cases)
    sides = (("ours", mine), ("ragas", theirs))
    told = {name: right(cases, results, fixed) for name, results in sides}
    lines = ["| | n | ours | ragas | ours − ragas |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(case.set for case in cases):
        at = np.array([case.set == name for case in cases])
        both = [balanced_accuracy(labels[at], told[side][at]) for side, _ in sides]
        lines.append(f"| {name} | {at.sum()} | {both[0]:.3f} | {both[1]:.3f} | {both[0] - both[1]:+.3f} |")
    lines.append(_line("**all, score ≥ 0.75**", cases, labels, told["ours"], told["ragas"]))
    best = {name: right(cases, results, held_out_thresholds(cases, results)) for name, results in sides}
    lines.append(_line("all, best threshold of the other folds", cases, labels, best["ours"], best["ragas"]))
    for label, text in ((True, "supported, told right"), (False, "unsupported, told right")):
        shares = [told[side][labels == label].mean() for side, _ in sides]
        lines.append(f"| {text} | {(labels == label).sum()} | {shares[0]:.3f} | {shares[1]:.3f} | |")
    counts = [Counter(r.unscored.split(":")[0] for r in _of(cases, results) if r.unscored) for _, results in sides]
    lines.append(f"| unscored (wrong on either side) | | {_counted(counts[0])} | {_counted(counts[1])} | |")
    for text, attribute in (
        ("calls", "calls"), ("prompt tokens", "prompt_tokens"), ("completion tokens", "completion_tokens"),
        ("**tokens**", "tokens"), ("seconds", "seconds"),
    ):  # fmt: skip
        sums = [sum(getattr(r, attribute) for r in _of(cases, results)) for _, results in sides]
        lines.append(f"| {text} | | {sums[0]:,.0f} | {sums[1]:,.0f} | {sums[0] / max(sums[1], 1):.0%} of ragas |")
    return "\n".join(lines)


def _line(text: str, cases: Sequence[Case], labels: Bools, mine: Bools, theirs: Bools) -> str:
    gap, low, high = difference(cases, mine, theirs)
    accuracies = f"{balanced_accuracy(labels, mine):.3f} | {balanced_accuracy(labels, theirs):.3f}"
    return f"| {text} | {len(cases)} | {accuracies} | {gap:+.3f} [{low:+.3f}, {high:+.3f}] |"


def _of(cases: Sequence[Case], results: Mapping[str, Result]) -> list[Result]:
    return [results[case.id] for case in cases]


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items())) or "0"
