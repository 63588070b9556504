"""The networks that a fit and its bench read with: the one that ships, and those of the folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metrics.encoder import load_encoder
from metrics.lexical.features import VERSION as LEXICAL_VERSION
from metrics.model_files import read_manifest
from metrics.tokens import read_tokens
from metrics.verifier import weights_file
from metrics.verifier.features import VERSION
from metrics.verifier.loading import verifier_over
from metrics.verifier.packed import PackedNetwork
from metrics.verifier.reader import Reader


@dataclass(frozen=True, slots=True)
class Networks:
    """`of_folds[k]` did not see fold k of the groups that people judged, so that its readings of them are like those of
    an answer that nobody has seen; `shipped` is the mean of their weights."""

    shipped: Reader
    of_folds: Sequence[Reader]
    state: str
    """Names them all."""


def networks(weights: Path, folds: Sequence[Path], folder: Path) -> Networks:
    """Raises:
    ModelError: a file does not fit the embedder.
    """
    base, tokens, encoder = read_manifest(folder).revision[:12], read_tokens(folder), load_encoder(folder, "bf16")
    trained = [weights_file.read(path, base) for path in (weights, *folds)]
    readers = [Reader(PackedNetwork(verifier_over(encoder, t.parameters, "bf16"), tokens)) for t in trained]
    state = " ".join(t.digest for t in trained)
    return Networks(readers[0], readers[1:] or readers, f"{state} {VERSION} {LEXICAL_VERSION}")


def fold_file(fold: int | str) -> str:
    return f"fold-{fold}.safetensors"
