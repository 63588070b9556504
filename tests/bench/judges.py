"""How well the lexical judge tells supported answers from others, beside two plain rivals, on the labelled sets.

    python -m tests.bench.judges --out docs/judges.md [--cosine-cache FILE] [--no-cosine]

Rivals: idf overlap (share of the answer's words that the contexts hold, by inverse document frequency over the set) and
the cosine of the embeddings of whole context and answer. Sets that were fitted on are scored by weights that saw no
group of the row's fold. Intervals: 95 %, bootstrap over groups.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.calibration import excess_error
from metrics.faithfulness import answer_log_odds, ask, faithfulness
from metrics.judge import Judgement
from metrics.lexical import corpus
from metrics.lexical.answer_fit import REAL, answered_sets, with_answers
from metrics.lexical.corpus import Row, event_of, fold_of
from metrics.lexical.features import VERSION
from metrics.lexical.fit import Extractor, balanced_accuracy, examples_of, held_out_judges
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.model import load_model
from metrics.outcome import Scored, Unscored
from tests.bench.pages import put_table
from tests.services import SHARED

Floats = npt.NDArray[np.float64]
SETS = (
    "attributionbench", "lfqa_sentences", "lfqa_responses", "wice_claims", "begin_v2", "faithdial_audit", "q2_wow",
    "qags", "gofigure", "falke_rank19", "summeval", "rgb_pairs", "ragtruth_qa_part", "mtrag_part", "expertqa_part",
    "summedits_part",
)  # fmt: skip
RESAMPLES = 500
BEGIN, END = "<!-- table: python -m tests.bench.judges -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Result:
    """Scores of the rows of one set that the pipeline scores; `unscored` counts the others by reason.

    `sums`: of `metrics.faithfulness.answer_log_odds`, where 0 is the shipped threshold; `faithful`: faithfulness.
    """

    name: str
    labels: npt.NDArray[np.int64]
    groups: list[str]
    scores: Mapping[str, Floats]
    sums: Floats
    faithful: Floats
    unscored: Mapping[str, int]
    seconds_per_statement: float


def auroc(labels: npt.NDArray[np.int64], scores: Floats) -> float:
    """Area under the ROC curve, ties counted half (Mann-Whitney)."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    positive = int(labels.sum())
    negative = len(labels) - positive
    return float((ranks[labels == 1].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


_TOKEN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff\u3040-\u30ff]+")


def words_of(text: str) -> set[str]:
    """Lower-case words, and neighbouring pairs of characters where words are not set apart."""
    found: set[str] = set()
    for token in _TOKEN.findall(text.lower()):
        wide = token[0] > "\u2fff"
        found.update(token[k : k + 2] for k in range(max(1, len(token) - 1))) if wide else found.add(token)
    return found


def idf_overlap(rows: Sequence[Row]) -> Floats:
    documents = {text for row in rows for text in row.contexts}
    frequency = Counter(word for text in documents for word in words_of(text))
    idf = {word: math.log((len(documents) + 1) / (n + 0.5)) for word, n in frequency.items()}
    unseen = math.log((len(documents) + 1) / 0.5)
    scores = []
    for row in rows:
        held = set().union(*(words_of(text) for text in row.contexts))
        mine = words_of(row.answer)
        total = sum(idf.get(word, unseen) for word in mine)
        scores.append(sum(idf.get(word, unseen) for word in mine if word in held) / total if total else 0.0)
    return np.array(scores)


class Cosine:
    """Whole-text cosine with the default embedder; values are kept in a file, as they take an hour on two cores."""

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._known: dict[str, float | None] = json.loads(cache.read_text()) if cache and cache.exists() else {}

    def __call__(self, name: str, rows: Sequence[Row]) -> Floats:
        if any(f"{name}/{row.id}" not in self._known for row in rows):
            self._embed(name, rows)
        return np.array([-1.0 if (v := self._known[f"{name}/{row.id}"]) is None else v for row in rows])

    def _embed(self, name: str, rows: Sequence[Row]) -> None:
        from consumer.embedders import build_evaluator
        from consumer.settings import Scoring, Settings

        scoring = Scoring(metrics=("topic_similarity",), aggregation="all", sketch=False)
        evaluator = build_evaluator(Settings(scoring=scoring), None)
        for at in range(0, len(rows), 32):
            batch = rows[at : at + 32]
            for row, evaluation in zip(batch, evaluator.evaluate([event_of(r) for r in batch]), strict=True):
                outcome = evaluation.outcomes["topic_similarity"]
                self._known[f"{name}/{row.id}"] = outcome.value if isinstance(outcome, Scored) else None
        if self._cache:
            self._cache.write_text(json.dumps(self._known))


def judged(name: str, rows: Sequence[Row], judges: Sequence[LexicalJudge], rivals: Mapping[str, Floats]) -> Result:
    """Every row through splitting and judging; a row of fold k by `judges[k]`."""
    kept: list[int] = []
    scores: list[float] = []
    sums: list[float] = []
    faithful: list[float] = []
    unscored: Counter[str] = Counter()
    statements = 0
    started = time.process_time()
    for k, row in enumerate(rows):
        asked = ask(event_of(row))
        if isinstance(asked.request, Unscored):
            unscored["refusal" if asked.claims.refusal else str(asked.request.reason)] += 1
            continue
        judge = judges[fold_of(row.group, len(judges))]
        judgement = judge.judge([asked.request])[0]
        outcome = faithfulness(asked.request.statements, judgement)
        if not isinstance(judgement, Judgement) or not isinstance(outcome, Scored):
            raise SystemExit(f"{name} {row.id}: the judge gave {judgement}")
        kept.append(k)
        statements += len(judgement.verdicts)
        probability = judge.faithful_probability(asked.request, judgement)
        if isinstance(probability, Unscored):
            raise SystemExit(f"{name} {row.id}: no probability of the answer, {probability}")
        scores.append(probability)
        sums.append(answer_log_odds(judgement.verdicts))
        faithful.append(outcome.value)
    seconds = (time.process_time() - started) / max(statements, 1)
    every = {"lexical": np.array(scores)} | {rival: values[kept] for rival, values in rivals.items()}
    labels = np.array([rows[k].label for k in kept])
    return Result(
        name, labels, [rows[k].group for k in kept], every, np.array(sums), np.array(faithful), unscored, seconds
    )


def resamples(result: Result, rng: np.random.Generator) -> dict[str, Floats]:
    """AUROC of every method over the same resamples of whole groups."""
    members: dict[str, list[int]] = {}
    for k, group in enumerate(result.groups):
        members.setdefault(group, []).append(k)
    groups = [np.array(m) for m in members.values()]
    drawn: dict[str, list[float]] = {method: [] for method in result.scores}
    while len(drawn["lexical"]) < RESAMPLES:
        at = np.concatenate([groups[g] for g in rng.integers(0, len(groups), len(groups))])
        labels = result.labels[at]
        if 0 < labels.sum() < len(labels):
            for method, scores in result.scores.items():
                drawn[method].append(auroc(labels, scores[at]))
    return {method: np.array(values) for method, values in drawn.items()}


def interval(values: Floats) -> str:
    low, high = np.quantile(values, [0.025, 0.975])
    return f"[{low:.3f}, {high:.3f}]"


def report(results: Sequence[Result]) -> str:
    rng = np.random.default_rng(20261130)
    rivals = [method for method in results[0].scores if method != "lexical"]
    lines = [
        f"| set | n | unscored | lexical AUROC | {' | '.join(rivals)} | lexical − better rival | balanced accuracy "
        "| best possible | faithfulness AUROC |",
        f"|---|---|---|---|{'---|' * len(rivals)}---|---|---|---|",
    ]
    pooled: dict[str, list[Floats]] = {method: [] for method in results[0].scores}
    points: dict[str, list[float]] = {method: [] for method in results[0].scores}
    gaps, accuracies = [], []
    for result in results:
        drawn = resamples(result, rng)
        point = {method: auroc(result.labels, scores) for method, scores in result.scores.items()}
        better = max(rivals, key=lambda method: point[method])
        for method in point:
            pooled[method].append(drawn[method])
            points[method].append(point[method])
        gaps.append(drawn["lexical"] - drawn[better])
        mine = result.sums
        accuracy = balanced_accuracy(mine, result.labels, 0.0)
        accuracies.append(accuracy)
        thresholds = np.quantile(mine, np.linspace(0.01, 0.99, 99))
        best = max(balanced_accuracy(mine, result.labels, float(t)) for t in thresholds)
        fitted = "*" if result.name in corpus.LABELLED else ""
        lines.append(
            f"| {result.name}{fitted} | {len(result.labels)} | {sum(result.unscored.values())} | "
            f"{point['lexical']:.3f} {interval(drawn['lexical'])} | {' | '.join(f'{point[r]:.3f}' for r in rivals)} | "
            f"{point['lexical'] - point[better]:+.3f} {interval(gaps[-1])} | {accuracy:.3f} | {best:.3f} | "
            f"{auroc(result.labels, result.faithful):.3f} |"
        )
    means = {method: np.mean(values, axis=0) for method, values in pooled.items()}
    mean = {method: float(np.mean(values)) for method, values in points.items()}
    top = max(rivals, key=lambda method: mean[method])
    gap = mean["lexical"] - mean[top]
    unscored = sum(sum(r.unscored.values()) for r in results)
    lines.append(
        f"| **mean of sets** | {sum(len(r.labels) for r in results)} | {unscored} | "
        f"**{mean['lexical']:.3f}** {interval(means['lexical'])} | {' | '.join(f'{mean[r]:.3f}' for r in rivals)} | "
        f"**{gap:+.3f}** {interval(means['lexical'] - means[top])} | {np.mean(accuracies):.3f} | | |"
    )
    real = [r for r in results if r.name in REAL]
    probabilities = np.concatenate([r.scores["lexical"] for r in real])
    error = excess_error(probabilities, np.concatenate([r.labels for r in real]))
    lines.append(f"\nCalibration error of the probability on {' and '.join(REAL)}: {error:+.3f} above chance.")
    speed = sum(r.seconds_per_statement for r in results) / len(results) * 1e3
    lines.append(f"\nMean time a statement, contexts read included: {speed:.2f} ms on one core.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--out", type=Path, help="a page whose table is replaced; without it the table is printed")
    parser.add_argument("--cosine-cache", type=Path)
    parser.add_argument("--no-cosine", action="store_true")
    chosen = parser.parse_args()
    if not (chosen.data / "labelled").is_dir():
        parser.error(f"{chosen.data} has no folder labelled: give --data the folder of the labelled sets")
    shipped = load_model(VERSION)
    extract = Extractor(shipped.prior)
    sets = examples_of(chosen.data, extract)
    folds = held_out_judges(sets, extract.names, shipped.prior)
    folds = with_answers(folds, answered_sets(chosen.data, folds))
    cosine = Cosine(chosen.cosine_cache)
    results = []
    for name in SETS:
        rows = corpus.labelled(chosen.data, name)
        rivals = {"idf overlap": idf_overlap(rows)} | ({} if chosen.no_cosine else {"cosine": cosine(name, rows)})
        results.append(judged(name, rows, folds if name in corpus.LABELLED else [LexicalJudge(shipped)], rivals))
        print(name, len(rows), dict(results[-1].unscored), flush=True)
    put_table(chosen.out, BEGIN, report(results), END)


if __name__ == "__main__":
    main()
