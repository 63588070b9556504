"""Export a trained network and fit what joins it with words: `python -m metrics.verifier.fit --data DATA`.

Reads checkpoints of `metrics.verifier.train`, writes verifier.safetensors (8 bits) and joined.json into `--to`. All
fits are by groups of the sets that may be trained on, each read by a network that did not see the group; every figure
that is printed comes from rows of a fold that the fit did not see either.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from metrics.calibration import Curve, excess_error, fitted
from metrics.lexical import corpus
from metrics.lexical.corpus import Row, fold_of
from metrics.lexical.features import VERSION as LEXICAL_VERSION
from metrics.lexical.fit import (
    FOLDS,
    Example,
    Extractor,
    Fitted,
    balanced_accuracy,
    examples_of,
    fit,
    held_out,
    held_out_judges,
    placed,
)
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.model import load_model
from metrics.logistic import logistic
from metrics.model_files import ModelError, read_manifest
from metrics.model_store import default_dir, ready_model
from metrics.packaged_model import NAME as BASE
from metrics.verifier import checkpoints, examples, joined, weights_file
from metrics.verifier.checkpoints import CheckpointError
from metrics.verifier.features import CONFLICT_SIGNS, SIGNS
from metrics.verifier.joined import Joined
from metrics.verifier.networks import Networks, fold_file, networks
from metrics.verifier.progress import auroc
from metrics.verifier.scored import Scores, featured, opened
from metrics.verifier.shipped_files import JOINED, WEIGHTS
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED

Floats = npt.NDArray[np.float64]
ANSWERS = ("ragtruth_qa_part", "mtrag_part")
"""Real RAG answers: what probabilities of whole answers are calibrated on."""
KEPT_BACK = 0.06
"""Share of `examples.SHARES` that is read of the groups kept back from training."""
DECIDES_FROM = 0.25
"""`Joined.decides_from`: chosen on sets that may be fitted on, and on the tax example."""
NAMES, CONFLICTS = tuple(SIGNS), tuple(CONFLICT_SIGNS)


def lexical_folds(data: Path) -> list[LexicalJudge]:
    """The lexical judge fitted without each fold in turn, so that its log-odds are no echo of a row's own label."""
    shipped = load_model(LEXICAL_VERSION)
    extract = Extractor(shipped.prior)
    sets = examples_of(data, extract)
    return held_out_judges(sets, extract.names, shipped.prior)


def kept_back_rows(data: Path, seed: int) -> dict[str, list[Row]]:
    """Claims about passages that training never sees, by source, each a row of its own."""
    rows: dict[str, list[Row]] = {}
    for passage in examples.stage(data, seed, KEPT_BACK, kept_back=True):
        for k, claim in enumerate(passage.claims):
            known = {CONTRADICTED: True, NOT_FOUND: False}.get(claim.label)
            own = rows.setdefault(f"kept back {passage.source}", [])
            label = int(claim.label == SUPPORTED)
            key = f"{hashlib.sha256(f'{passage.text}|{claim.text}'.encode()).hexdigest()[:16]}-{k}"
            own.append(Row(key, (passage.text,), claim.text, label, passage.group, whole=True, contradicted=known))
    return rows


def example_sets(
    rows: Mapping[str, Sequence[Row]], judges: Sequence[LexicalJudge], networks: Networks, scores: Scores
) -> tuple[dict[str, list[Example]], dict[str, list[Example]]]:
    """By set: examples over `NAMES`, and over `CONFLICTS`."""
    support: dict[str, list[Example]] = {}
    conflict: dict[str, list[Example]] = {}
    for name, of_set in rows.items():
        readers = networks.of_folds if name in corpus.LABELLED else (networks.shipped,)
        for row, features in featured(name, of_set, judges, readers, scores):
            for target, names in ((support, NAMES), (conflict, CONFLICTS)):
                values = np.array([[f[n] for n in names] for f in features], dtype=np.float64)
                target.setdefault(name, []).append(Example(values, row.label, row.group, row.contradicted))
        print(f"{name}: {len(of_set)} rows", flush=True)
    return support, conflict


def conflict_fit(sets: Mapping[str, Sequence[Example]]) -> Fitted:
    """Contradicted (1) against not found (0), of single statements that are known to be one or the other."""
    known = [e for of_set in sets.values() for e in of_set if e.contradicted is not None and len(e.features) == 1]
    x = np.array([[*e.features[0], 1.0] for e in known])
    y = np.array([float(bool(e.contradicted)) for e in known])
    share = np.where(y == 1, 0.5 / max(y.sum(), 1.0), 0.5 / max((1 - y).sum(), 1.0)) * 1000.0
    low = np.array([0.0] * len(CONFLICTS) + [-np.inf])
    solved = logistic(x, y, np.asarray(share), low, np.full(len(low), np.inf), steps=1500)
    return Fitted(solved[:-1], float(solved[-1]))


def answer_curve(
    sets: Mapping[str, Sequence[Example]], fits: Sequence[Fitted], shift: float
) -> tuple[Curve, float, str]:
    """Curve of whole answers, threshold, and a line on both from curves that did not see the fold."""
    used = [e for name in ANSWERS for e in sets[name]]
    odds = np.array([fits[fold_of(e.group, FOLDS)].answer(e.features) - shift for e in used])
    counts = np.array([len(e.features) for e in used])
    labels = np.array([e.label for e in used])
    folds = np.array([fold_of(e.group, FOLDS) for e in used])
    share = np.ones(len(used))
    curve = fitted(odds, counts, labels, share)
    probabilities = np.zeros(len(used))
    for fold in range(FOLDS):
        rest, own = folds != fold, folds == fold
        seen = fitted(odds[rest], counts[rest], labels[rest], share[rest])
        probabilities[own] = [seen.probability(x, n) for x, n in zip(odds[own], counts[own], strict=True)]
    grid = np.quantile(probabilities, np.linspace(0.05, 0.95, 91))
    accuracies = np.array([balanced_accuracy(probabilities, labels, float(t)) for t in grid])
    smooth = np.convolve(accuracies, np.ones(9) / 9, mode="valid")
    threshold = float(grid[int(np.argmax(smooth)) + 4])
    line = (
        f"{' + '.join(ANSWERS)}: {len(used)} answers, AUROC {auroc(labels == 1, probabilities):.3f}, balanced accuracy "
        f"at {threshold:.2f} {balanced_accuracy(probabilities, labels, threshold):.3f}, calibration error above chance "
        f"{excess_error(probabilities, labels):.3f}"
    )
    return curve, threshold, line


def joined_of(fit_of: Fitted, shift: float, conflict: Fitted, curve: Curve, threshold: float) -> Joined:
    return Joined(
        {n: round(float(w), 4) for n, w in zip(NAMES, fit_of.weights, strict=True)},
        round(fit_of.intercept - shift, 4),
        {n: round(float(w), 4) for n, w in zip(CONFLICTS, conflict.weights, strict=True)},
        round(conflict.intercept, 4),
        DECIDES_FROM,
        curve,
        round(threshold, 4),
        "unsaved",
    )


def report(sets: Mapping[str, Sequence[Example]], fits: Sequence[Fitted]) -> str:
    """A line a set: AUROC of answers by words alone, network alone, and joined by fits that did not see the fold."""
    lines = ["set                    n     words  network  joined"]
    for name in corpus.LABELLED:
        if len({e.label for e in sets.get(name, ())}) < 2:
            continue
        labels = np.array([e.label == 1 for e in sets[name]])
        alone = [Fitted(np.array([float(n == one) for n in NAMES]), 0.0) for one in ("words", "network")]
        scores = [np.array([a.answer(e.features) for e in sets[name]]) for a in alone]
        scores.append(np.array([fits[fold_of(e.group, FOLDS)].answer(e.features) for e in sets[name]]))
        figures = "   ".join(f"{auroc(labels, s):.3f}" for s in scores)
        lines.append(f"{name:20} {len(labels):5}  {figures}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Export the verifier and fit what joins it with words.")
    parser.add_argument("--data", type=Path, required=True, help="folder with labelled/ and nli/")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        nargs="+",
        default=[Path("build/verifier") / checkpoints.LATEST],
        help="one, or those of `train --fold 0`, `--fold 1`, ...: their mean is shipped",
    )
    parser.add_argument(
        "--start",
        type=Path,
        help="the checkpoint that the last stage began at: each network goes half of the way back to it",
    )
    parser.add_argument("--to", type=Path, default=Path("build/verifier"), help="where the two files go")
    parser.add_argument("--sets", nargs="*", default=corpus.LABELLED, help="fit on some sets only, for a quick look")
    parser.add_argument("--rows", type=int, help="read so many rows of a set only, for a quick look")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models-dir", type=Path, default=default_dir(os.environ))
    chosen = parser.parse_args(arguments)
    if not (chosen.data / "labelled").is_dir():
        parser.error(f"{chosen.data} has no folder labelled: give --data the folder of the labelled sets")
    if not set(ANSWERS) <= set(chosen.sets):
        parser.error(f"--sets must hold {' and '.join(ANSWERS)}: whole answers are calibrated on them")
    torch.set_num_threads(chosen.threads)
    try:
        folder = ready_model(chosen.models_dir, BASE)
        trained = [checkpoints.load(path).parameters for path in chosen.checkpoint]
        if chosen.start:
            start = checkpoints.load(chosen.start).parameters
            trained = [weights_file.mean([start, own]) for own in trained]
        base = read_manifest(folder).revision[:12]
        checksum = weights_file.write(chosen.to / WEIGHTS, weights_file.mean(trained), base)
        print(f"{chosen.to / WEIGHTS}: of {', '.join(map(str, chosen.checkpoint))}, sha256 {checksum}", flush=True)
        of_folds = [chosen.to / fold_file(k) for k in range(len(trained))] if len(trained) > 1 else []
        for path, parameters in zip(of_folds, trained, strict=False):
            weights_file.write(path, parameters, base)
        read_by = networks(chosen.to / WEIGHTS, of_folds, folder)
    except (CheckpointError, ModelError) as error:
        sys.exit(str(error))
    judges = lexical_folds(chosen.data)
    rows = {name: corpus.labelled(chosen.data, name)[: chosen.rows] for name in chosen.sets}
    rows |= {name: own[: chosen.rows] for name, own in kept_back_rows(chosen.data, chosen.seed).items()}
    scores = opened(chosen.to / "features.jsonl", read_by.state)
    support, conflict = example_sets(rows, judges, read_by, scores)
    fits = held_out(support, NAMES, SIGNS)
    shift = placed(support, fits)
    curve, threshold, line = answer_curve(support, fits, shift)
    print(report(support, fits), line, sep="\n", flush=True)
    model = joined_of(fit(support, NAMES, SIGNS), shift, conflict_fit(conflict), curve, threshold)
    made = {
        "command": "python -m metrics.verifier.fit --data DATA",
        "checkpoints": [f"{path.parent.name}/{path.name}" for path in chosen.checkpoint],
        "start": chosen.start and f"{chosen.start.parent.name}/{chosen.start.name}",
        "network_sha256": checksum,
        "rows": {name: len(of_set) for name, of_set in support.items()},
    }
    (chosen.to / JOINED).write_text(joined.content_of(model, curve, made), encoding="utf-8")
    print(f"wrote {chosen.to / JOINED}")


if __name__ == "__main__":
    main()
