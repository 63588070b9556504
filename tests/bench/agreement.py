"""Agreement with people: for each labelled set the metric that is meant for it, beside two plain rivals.

    python -m tests.bench.agreement --out docs/statistics.md [--cache FILE]

Faithfulness is rated by `expected_faithfulness`, of the lexical judge and of the local one; «share» is `faithfulness`
and «answer» `faithful_probability` by the same judge. The local judge rates no set that its network has learnt from.

Rivals: the simple recipe, cosine of the all-MiniLM-L6-v2 vectors of whole context and whole answer (cut at 256 tokens,
as the library does), and word overlap, the share of the answer's words that stand in the contexts. Sets that the
lexical judge was fitted on are judged by weights that saw no group of the row's fold. Intervals: 95 %, 1,000 resamples
of whole groups; differences are paired.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consumer.embedders import load_embedder
from consumer.local_judges import build_local
from consumer.settings import Embedding, Settings
from metrics.agreement import Estimate, Floats, Mask, Statistic, auroc, estimate, resampled, spearman
from metrics.embedding import LocalEmbedder, uncounted
from metrics.evaluation import Evaluation, Evaluator
from metrics.event import Chunk, Event, Turn
from metrics.expected_faithfulness import NAME as EXPECTED
from metrics.expected_faithfulness import ExpectedFaithfulness
from metrics.faithful_probability import FaithfulProbability
from metrics.lexical import corpus
from metrics.lexical.answer_fit import answered_sets, with_answers
from metrics.lexical.features import VERSION
from metrics.lexical.fit import Extractor, examples_of, held_out_judges
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.model import load_model
from metrics.metric import Text
from metrics.outcome import Scored
from metrics.similarity import build_metrics, cosine
from metrics.verifier.judge import LocalJudge
from tests.bench.kept_vectors import KeptVectors, first_window, kept
from tests.bench.pages import put_table
from tests.services import SHARED

BEGIN, END = "<!-- table: python -m tests.bench.agreement -->", "<!-- end of table -->"
COSINE, OVERLAP, SHARE, ANSWER = "MiniLM cosine", "word overlap", "share", "answer"
CLAIM = 0.82
"""The Spearman correlation with expert ratings of topic adherence that is claimed for the simple recipe."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Task:
    """A set, the human rating in it, and our metric that is meant to see what was rated."""

    set: str
    rating: str
    metric: str
    judge: str = ""

    def __str__(self) -> str:
        return f"{self.set} ({', '.join(part for part in (self.rating, self.judge) if part)})"


TASKS = (
    Task("begin_v1_topic", "topic_label", "topic_similarity"),
    Task("summeval", "relevance", "topic_similarity"),
    Task("summeval", "score", EXPECTED, "lexical"),
    Task("grade_coherence", "score", "question_answer_similarity"),
    Task("qags", "score", EXPECTED, "lexical"),
    Task("qags", "score", EXPECTED, "local"),
    Task("lfqa_responses", "score", EXPECTED, "lexical"),
    Task("lfqa_responses", "score", EXPECTED, "local"),
)


@dataclass(frozen=True)
class Compared:
    """Scores by method, over the rows that our metric scores; `unscored` says how many it does not."""

    task: Task
    scores: Mapping[str, Floats]
    ratings: Floats
    good: Mask
    groups: list[str]
    unscored: int


def rows_of(data: Path, task: Task) -> list[dict[str, Any]]:
    with gzip.open(data / "labelled" / f"{task.set}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row.get(task.rating) is not None and row["answer"].strip()]


def event_of(row: Mapping[str, Any]) -> Event:
    history = row.get("history") or ""
    turns = tuple(
        Turn("user", line.removeprefix("user: ")) for line in history.split("\n") if line.startswith("user: ")
    )
    chunks = tuple(Chunk(text) for text in row["contexts"])
    return Event(str(row["id"]), 0.0, row.get("question"), chunks, row["answer"], conversation=turns)


def word_overlap(row: Mapping[str, Any]) -> float:
    held = set(_WORD.findall(" ".join(row["contexts"]).lower()))
    words = _WORD.findall(row["answer"].lower())
    return sum(word in held for word in words) / len(words) if words else 0.0


def simple_recipe(rows: Sequence[Mapping[str, Any]], model: KeptVectors) -> list[float]:
    """NaN where a text has no vector."""
    pairs = [(Text("passage", "\n\n".join(row["contexts"])), Text("passage", row["answer"])) for row in rows]
    vectors = model.embed([text for pair in pairs for text in pair])
    values = []
    for context, answer in zip(vectors[::2], vectors[1::2], strict=True):
        both = isinstance(context, np.ndarray) and isinstance(answer, np.ndarray)
        values.append(cosine(context, answer) if both else float("nan"))  # type: ignore[arg-type]
    return values


class Judges:
    """The judge for a row: the shipped one, or the lexical one that saw no group of its fold."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._shipped = LexicalJudge()
        self._folds: list[LexicalJudge] = []
        self._network: LocalJudge | None = None

    def of(self, task: Task, group: str) -> LexicalJudge | LocalJudge:
        """Raises:
        ValueError: the local judge's network has learnt from the set.
        """
        if task.judge == "local":
            if task.set in corpus.LABELLED:
                raise ValueError(f"the shipped network has learnt from {task.set}")
            self._network = self._network or local_judge()
            return self._network
        if task.set not in corpus.LABELLED:
            return self._shipped
        if not self._folds:
            shipped = load_model(VERSION)
            extract = Extractor(shipped.prior)
            sets = examples_of(self._data, extract)
            folds = held_out_judges(sets, extract.names, shipped.prior)
            self._folds = with_answers(folds, answered_sets(self._data, folds))
        return self._folds[corpus.fold_of(group, len(self._folds))]


def local_judge() -> LocalJudge:
    embedding = Embedding()
    model = local(embedding.model)
    return build_local(Settings().judge, embedding, model, model, lambda: None)


def faithfulness_of(task: Task, rows: Sequence[Mapping[str, Any]], judges: Judges) -> dict[str, list[float]]:
    """By metric; NaN where there is no score."""
    found: dict[str, list[float]] = {SHARE: [], ANSWER: [], EXPECTED: []}
    for row in rows:
        judge = judges.of(task, str(row["group"]))
        of_verdicts = (FaithfulProbability(judge), ExpectedFaithfulness())
        evaluator = Evaluator((), _NoVectors(), sketches=False, judge=judge, of_verdicts=of_verdicts)
        (evaluation,) = evaluator.evaluate([event_of(row)])
        for name, metric in ((SHARE, "faithfulness"), (ANSWER, "faithful_probability"), (EXPECTED, EXPECTED)):
            found[name].append(_value(evaluation, metric))
    return found


def similarity_of(task: Task, rows: Sequence[Mapping[str, Any]], model: KeptVectors) -> list[float]:
    evaluator = Evaluator(build_metrics((task.metric,), "best"), model, sketches=False)
    return [_value(evaluation, task.metric) for evaluation in evaluator.evaluate([event_of(row) for row in rows])]


def compare(data: Path, task: Task, ours: KeptVectors, minilm: KeptVectors, judges: Judges) -> Compared:
    rows = rows_of(data, task)
    scores = {COSINE: simple_recipe(rows, minilm), OVERLAP: [word_overlap(row) for row in rows]}
    if task.judge:
        scores |= faithfulness_of(task, rows, judges)
    else:
        scores[task.metric] = similarity_of(task, rows, ours)
    arrays = {name: np.array(values, np.float64) for name, values in scores.items()}
    there = ~np.isnan(np.stack(list(arrays.values()))).any(axis=0)
    ratings = np.array([float(row[task.rating]) for row in rows])
    middle = (ratings.min() + ratings.max()) / 2.0
    labels = [row.get("label") if task.rating == "score" else None for row in rows]
    good = np.array([r >= middle if label is None else label == 1 for r, label in zip(ratings, labels, strict=True)])
    groups = [str(row["group"]) for row, keep in zip(rows, there, strict=True) if keep]
    kept_scores = {name: values[there] for name, values in arrays.items()}
    return Compared(task, kept_scores, ratings[there], good[there], groups, int((~there).sum()))


def _value(evaluation: Evaluation, metric: str) -> float:
    outcome = evaluation.outcomes[metric]
    return outcome.value if isinstance(outcome, Scored) else float("nan")


class _NoVectors:
    identity, dimension = "none", 1

    def embed(self, texts: Sequence[Text]) -> list[Any]:
        raise AssertionError("no metric of verdicts needs vectors")


def statistics_of(compared: Compared, statistic: str) -> dict[str, tuple[float, Floats]]:
    """By method: the value, and its resamples (the same for every method)."""
    compute: dict[str, Statistic] = {}
    for name, scores in compared.scores.items():
        if statistic == "Spearman":
            compute[name] = lambda at, s=scores: spearman(s[at], compared.ratings[at])  # type: ignore[misc]
        else:
            compute[name] = lambda at, s=scores: auroc(s[at], compared.good[at])  # type: ignore[misc]
    everything = np.arange(len(compared.ratings))
    drawn = resampled(compute, compared.groups)
    return {name: (function(everything) or 0.0, drawn[name]) for name, function in compute.items()}


def report(results: Sequence[Compared]) -> str:
    lines = [
        f"| set, rating | n | metric | statistic | metric | {SHARE} | {ANSWER} | {COSINE} | {OVERLAP} | "
        "metric − better rival |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    ahead: dict[str, list[str]] = {}
    clear: dict[str, list[str]] = {}
    reached = []
    for result in results:
        task = result.task
        row = str(task)
        for statistic in ("Spearman", "AUROC"):
            found = statistics_of(result, statistic)
            rival = max((COSINE, OVERLAP), key=lambda name: found[name][0])
            own = found[task.metric]
            difference = estimate(own[0] - found[rival][0], own[1] - found[rival][1])
            ahead.setdefault(statistic, []).extend([row] if difference.value > 0.0 else [])
            clear.setdefault(statistic, []).extend([row] if difference.above(0.0) else [])
            if statistic == "Spearman":
                reached += [
                    f"{name} on {row} ({value:.3f})" for name, (value, _) in found.items() if value >= CLAIM - 0.02
                ]
            cells = [
                f"{task.set}, `{task.rating}`{f', {task.judge} judge' if task.judge else ''}",
                f"{len(result.ratings)} ({result.unscored} unscored)",
                f"`{task.metric}`",
                statistic,
                shown(estimate(*own)),
                *(f"{found[name][0]:.3f}" if name in found else "" for name in (SHARE, ANSWER)),
                shown(estimate(*found[COSINE])),
                shown(estimate(*found[OVERLAP])),
                f"{difference.value:+.3f} {interval(difference)}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    lines += [
        f"\nBy {statistic}: ahead of both rivals by point estimate in {len(ahead[statistic])} of {len(results)} rows; "
        f"the whole interval of the difference is above 0 for {', '.join(clear[statistic]) or 'none'}."
        for statistic in ahead
    ]
    lines.append(f"\nSpearman at {CLAIM} or within 0.02 of it: {'; '.join(reached) or 'nothing'}.")
    return "\n".join(lines)


def shown(found: Estimate) -> str:
    return f"{found.value:.3f} {interval(found)}"


def interval(found: Estimate) -> str:
    return "" if found.low is None or found.high is None else f"[{found.low:.3f}, {found.high:.3f}]"


def local(model: str) -> LocalEmbedder:
    loaded = load_embedder(Embedding(model=model), uncounted).embedder
    assert isinstance(loaded, LocalEmbedder)
    return loaded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--out", type=Path, help="a page whose table is replaced; without it the table is printed")
    default = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "groundwatch-bench-vectors.sqlite"
    parser.add_argument("--cache", type=Path, default=default, help="vectors from one run to the next")
    parser.add_argument("--only", help="one set")
    chosen = parser.parse_args()
    if not (chosen.data / "labelled").is_dir():
        parser.error(f"{chosen.data} has no folder labelled: give --data the folder of the labelled sets")
    ours = kept(local(Embedding().model), chosen.cache)
    minilm = first_window(local("all-MiniLM-L6-v2"), chosen.cache)
    judges = Judges(chosen.data)
    results = []
    for task in TASKS:
        if chosen.only in (None, task.set):
            results.append(compare(chosen.data, task, ours, minilm, judges))
            print(task, len(results[-1].ratings), "rows", flush=True)
    put_table(chosen.out, BEGIN, report(results), END)


if __name__ == "__main__":
    main()
