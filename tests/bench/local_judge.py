"""How the local verifier does beside the lexical judge, on the same rows, with paired intervals.

    python -m tests.bench.local_judge --network build/verifier/verifier.safetensors [--sets NAME ...] [--rows N]

The network never saw any of these sets. What joins it with words is fitted by folds: a row of a set that is fitted on
is scored by weights that saw no group of its fold, all others by weights over all fitted sets. Readings are kept in
features.jsonl beside the network: an interrupted run goes on. Intervals: 95 %, bootstrap over groups.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from metrics.calibration import Curve
from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Statement
from metrics.lexical import corpus
from metrics.lexical.corpus import Row, fold_of
from metrics.lexical.fit import Fitted, balanced_accuracy, fit, held_out, placed
from metrics.lexical.judge import LexicalJudge
from metrics.model_files import read_manifest
from metrics.model_store import default_dir, ready_model
from metrics.packaged_model import NAME as BASE
from metrics.verifier import weights_file
from metrics.verifier.features import SIGNS
from metrics.verifier.fit import (
    NAMES,
    answer_curve,
    conflict_fit,
    example_sets,
    joined_of,
    kept_back_rows,
    lexical_folds,
)
from metrics.verifier.judge import LocalJudge
from metrics.verifier.networks import Networks, fold_file, networks
from metrics.verifier.scored import Scores, featured, opened
from metrics.verifier.sources import pairs
from tests.bench.chinese_edits import edited_pairs
from tests.bench.chinese_pairs import TAX, minimal_pairs
from tests.bench.judges import SETS, auroc
from tests.services import SHARED

Floats = npt.NDArray[np.float64]
RESAMPLES = 500
POOLS = {
    "real RAG answers": ("ragtruth_qa_part", "mtrag_part"),
    "edits and paraphrase": ("summedits_part", "falke_rank19", "q2_wow", "qags"),
}


@dataclass(frozen=True)
class Scored:
    """Log-odds of the rows of a set, by words alone, by the network alone and joined."""

    labels: npt.NDArray[np.int64]
    groups: tuple[str, ...]
    methods: Mapping[str, Floats]


def paired(scored: Scored, one: str, other: str, rng: np.random.Generator) -> tuple[float, float]:
    """95 % of the difference of two methods' AUROC over resamples of whole groups."""
    members: dict[str, list[int]] = {}
    for k, group in enumerate(scored.groups):
        members.setdefault(group, []).append(k)
    groups = [np.array(m) for m in members.values()]
    drawn: list[float] = []
    while len(drawn) < RESAMPLES:
        at = np.concatenate([groups[g] for g in rng.integers(0, len(groups), len(groups))])
        labels = scored.labels[at]
        if 0 < labels.sum() < len(labels):
            drawn.append(auroc(labels, scored.methods[one][at]) - auroc(labels, scored.methods[other][at]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def line_of(name: str, scored: Scored, rng: np.random.Generator) -> str:
    points = {method: auroc(scored.labels, values) for method, values in scored.methods.items()}
    low, high = paired(scored, "joined", "words", rng)
    accuracy = balanced_accuracy(scored.methods["joined"], scored.labels, 0.0)
    return (
        f"| {name} | {len(scored.labels)} | {points['words']:.3f} | {points['network']:.3f} | {points['joined']:.3f} | "
        f"{points['joined'] - points['words']:+.3f} [{low:+.3f}, {high:+.3f}] | {accuracy:.3f} |"
    )


def pooled(results: Mapping[str, Scored], names: Sequence[str]) -> Scored | None:
    """The rows of several sets put together; None where one is missing."""
    if any(name not in results for name in names):
        return None
    parts = [results[name] for name in names]
    return Scored(
        np.concatenate([p.labels for p in parts]),
        tuple(f"{name}/{g}" for name, p in zip(names, parts, strict=True) for g in p.groups),
        {m: np.concatenate([p.methods[m] for p in parts]) for m in parts[0].methods},
    )


def sampled(rows: Sequence[Row], most: int | None) -> list[Row]:
    """All rows, or so many at random, the same in every run."""
    return list(rows) if most is None or len(rows) <= most else random.Random(1).sample(list(rows), most)


def chinese_inference(data: Path, name: str, most: int) -> list[Row]:
    raw = list(pairs(data, name))
    rows = []
    for k, r in enumerate(raw):
        group = hashlib.sha256(r["premise"].encode()).hexdigest()
        label = int(r["label"] == "entailment")
        rows.append(Row(str(k), (r["premise"],), r["hypothesis"], label, group, whole=True))
    return sampled(rows, most)


def minimal_rows(count: int) -> list[Row]:
    rows = []
    for k, pair in enumerate(minimal_pairs(count)):
        for label, text in ((1, pair.true), (0, pair.false)):
            rows.append(Row(f"{k}-{label}", (pair.passage,), text, label, str(k), whole=True))
    return rows


def edited_rows(data: Path, count: int) -> list[Row]:
    return [
        Row(f"{k}-{label}", (pair.passage,), text, label, str(k), whole=True)
        for k, pair in enumerate(edited_pairs(data, count))
        for label, text in ((1, pair.true), (0, pair.false))
    ]


def scored_by(
    rows: Sequence[tuple[Row, Sequence[Mapping[str, float]]]], fits: Sequence[Fitted], shift: float
) -> Scored:
    """A row of fold k by `fits[k]`."""
    alone = {one: Fitted(np.array([float(n == one) for n in NAMES]), 0.0) for one in ("words", "network")}
    features = [np.array([[f[n] for n in NAMES] for f in of_row]) for _, of_row in rows]
    methods = {name: np.array([f.answer(x) for x in features]) for name, f in alone.items()}
    methods["joined"] = np.array(
        [fits[fold_of(row.group, len(fits))].answer(x) - shift for (row, _), x in zip(rows, features, strict=True)]
    )
    return Scored(np.array([row.label for row, _ in rows]), tuple(row.group for row, _ in rows), methods)


@dataclass(frozen=True)
class Study:
    """A network as read from its file, and all fits over its readings. `base`: revision of the embedder."""

    base: str
    digest: str
    networks: Networks
    scores: Scores
    shipped: LexicalJudge
    judges: Sequence[LexicalJudge]
    fits: Sequence[Fitted]
    shift: float
    whole: Fitted
    conflict: Fitted
    curve: Curve
    threshold: float
    line: str

    def read(self, name: str, rows: Sequence[Row]) -> list[tuple[Row, list[Mapping[str, float]]]]:
        """Rows with their features, by words whose fit saw no group of the row's fold."""
        if name in corpus.LABELLED:
            return list(featured(name, rows, self.judges, self.networks.of_folds, self.scores))
        return list(featured(name, rows, [self.shipped], [self.networks.shipped], self.scores))

    def scored(self, name: str, rows: Sequence[Row]) -> Scored:
        fits = self.fits if name in corpus.LABELLED else [self.whole]
        return scored_by(self.read(name, rows), fits, self.shift)


def study(network: Path, data: Path, rows: int | None = None, sets: Sequence[str] = corpus.LABELLED) -> Study:
    """Raises:
    ModelError: the file does not fit the embedder.
    """
    folder = ready_model(default_dir(os.environ), BASE)
    base = read_manifest(folder).revision[:12]
    trained = weights_file.read(network, base)
    folds = sorted(network.parent.glob(fold_file("*")))
    read_by = networks(network, folds, folder)
    scores = opened(network.parent / "features.jsonl", read_by.state)
    judges = lexical_folds(data)
    fitted_on = {name: sampled(corpus.labelled(data, name), rows) for name in corpus.LABELLED if name in sets}
    fitted_on |= {name: sampled(own, rows) for name, own in kept_back_rows(data, 20261130).items()}
    support, conflict = example_sets(fitted_on, judges, read_by, scores)
    fits = held_out(support, NAMES, SIGNS)
    shift, whole = placed(support, fits), fit(support, NAMES, SIGNS)
    curve, threshold, line = answer_curve(support, fits, shift)
    return Study(
        base, trained.digest, read_by, scores, LexicalJudge(), judges, fits, shift, whole, conflict_fit(conflict),
        curve, threshold, line,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=Path, required=True, help="verifier.safetensors, of metrics.verifier.fit")
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, help="at most so many rows of a set, at random")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    found = study(chosen.network, chosen.data, chosen.rows, chosen.sets)
    rows = {name: sampled(corpus.labelled(chosen.data, name), chosen.rows) for name in chosen.sets}
    rows["nli_ocnli_zh"] = chinese_inference(chosen.data, "nli_ocnli_zh", 1000)
    rows["nli_csnli_cmnli_zh"] = chinese_inference(chosen.data, "nli_csnli_cmnli_zh", 1000)
    rows["chinese edits"], rows["chinese minimal pairs"] = edited_rows(chosen.data, 80), minimal_rows(240)
    rng = np.random.default_rng(20261130)
    print(
        "| set | n | words | network | joined | joined − words | balanced accuracy |",
        "|---|---|---|---|---|---|---|",
        sep="\n",
    )
    results: dict[str, Scored] = {}
    for name, own in rows.items():
        results[name] = found.scored(name, own)
        print(line_of(name + ("*" if name in corpus.LABELLED else ""), results[name], rng), flush=True)
    for name, names in POOLS.items():
        if (together := pooled(results, names)) is not None:
            print(line_of(f"**{name}**", together, rng))
    print(found.line)
    model = joined_of(found.whole, found.shift, found.conflict, found.curve, found.threshold)
    judge = LocalJudge(found.shipped, found.networks.shipped, model, f"{found.base}/{found.digest}")
    for passage, statement in TAX:
        request = JudgeRequest(None, (Statement(statement, 0, len(statement)),), (Chunk(passage),))
        (judgement,) = judge.judge([request])
        assert isinstance(judgement, Judgement)
        verdict = judgement.verdicts[0]
        print(f"«{statement}»: {verdict.label} ({verdict.probability:.2f}), {verdict.reason}")


if __name__ == "__main__":
    main()
