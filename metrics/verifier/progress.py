"""How well a trained verifier does on the groups that are kept back from training: a look at progress, not a figure to
quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from metrics.encoder import Encoder
from metrics.tokens import Tokens
from metrics.verifier import examples
from metrics.verifier.network import assemble, read, rounded
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED
from metrics.verifier.tokenised import UNKNOWN, Labelled, lesson, steps, tokenised

SHARE = 0.05
"""Of `examples.SHARES`: some 3,000 claims."""
BUDGET = 4096


def auroc(labels: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64]) -> float:
    """Area under the ROC curve, ties counted half (Mann-Whitney); NaN where one class is missing.

    >>> auroc(np.array([True, False, True]), np.array([0.9, 0.1, 0.1]))
    0.75
    """
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    positive = int(labels.sum())
    negative = len(labels) - positive
    if not positive or not negative:
        return float("nan")
    return float((ranks[labels].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def kept_back_figures(data: Path, encoder: Encoder, tokens: Tokens, parameters: Mapping[str, Tensor], seed: int) -> str:
    """A line a source: AUROC of supported against the rest, of contradicted against not found, and of tokens."""
    rows = tokenised(examples.stage(data, seed, SHARE, kept_back=True), tokens)
    verifier = assemble(encoder.network, encoder.weights, parameters, rounded, torch.bfloat16)
    named: list[str] = []
    labels: list[int] = []
    classes: list[npt.NDArray[np.float64]] = []
    marks: list[npt.NDArray[np.int64]] = []
    marked: list[npt.NDArray[np.float64]] = []
    with torch.inference_mode():
        for step in steps(rows, BUDGET, seed):
            taught = lesson([rows[i] for i in step], tokens)
            found = read(verifier, taught.batch)
            classes.append(torch.softmax(found.classes.float(), 1).double().numpy())
            marks.append(taught.tokens.numpy())
            marked.append(found.tokens.double().numpy())
            labels += taught.labels.tolist()
            named += taught.sources
    return "\n".join(
        _lines(rows, named, np.array(labels), np.concatenate(classes), np.concatenate(marks), np.concatenate(marked))
    )


def _lines(
    rows: Sequence[Labelled],
    named: Sequence[str],
    labels: npt.NDArray[np.int64],
    classes: npt.NDArray[np.float64],
    marks: npt.NDArray[np.int64],
    marked: npt.NDArray[np.float64],
) -> list[str]:
    lines = [f"kept back: {len(rows)} premises, {len(labels)} claims"]
    for source in [*sorted(set(named)), "all"]:
        own = np.array([source in (n, "all") for n in named])
        supported = auroc(labels[own] == SUPPORTED, classes[own, SUPPORTED])
        kinds = own & ((labels == NOT_FOUND) | (labels == CONTRADICTED))
        odds = classes[kinds, CONTRADICTED] / (classes[kinds, CONTRADICTED] + classes[kinds, NOT_FOUND])
        kind = auroc(labels[kinds] == CONTRADICTED, odds)
        lines.append(f"  {source:20} n {own.sum():5}  supported {supported:.3f}  contradicted {kind:.3f}")
    known = marks != UNKNOWN
    lines.append(f"  unsupported tokens {auroc(marks[known] == 1, marked[known]):.3f}")
    return lines
