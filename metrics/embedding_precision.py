"""The embedder in several precisions: cosines over all pairs of the self-test's texts are what is compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from metrics.embedding import Network
from metrics.encoder import Precision, load_encoder
from metrics.precision import Comparison, chosen
from metrics.self_test import AGREEMENT
from metrics.tokens import Tokens

LARGEST_DIFFERENCE = 5e-4
"""Between a cosine at a precision and in float32."""
Vectors = npt.NDArray[np.float32]


def best_precision(folder: Path, tokens: Tokens) -> tuple[Precision, str]:
    """The embedder's precision on this machine, and why in a line."""
    pieces = _pieces(tokens)
    precision, trials = chosen(folder, "embedder", _comparison(folder, pieces))
    total = sum(map(len, pieces))
    return precision, "; ".join(
        f"{t.precision} {total / t.seconds:.0f} tokens/s, cosines within {t.difference:.1e}" for t in trials
    )


def _pieces(tokens: Tokens) -> list[list[int]]:
    return [[*tokens.before, *ids[: tokens.limit - 8], *tokens.after] for ids in tokens.cut(AGREEMENT)]


def _comparison(folder: Path, pieces: Sequence[Sequence[int]]) -> Comparison[Network, tuple[Vectors, Vectors]]:
    def said(network: Network) -> tuple[Vectors, Vectors]:
        """All texts together, and every third one alone: neighbours in a batch must change nothing."""
        alone = np.concatenate([network.encode([piece]) for piece in pieces[::3]])
        return network.encode(pieces), alone

    def apart(one: tuple[Vectors, Vectors], exact: tuple[Vectors, Vectors]) -> float:
        return max(cosines_apart(one[0], exact[0]), cosines_apart(one[1], exact[0][::3]))

    return Comparison(
        make=lambda precision: load_encoder(folder, precision),
        said=said,
        apart=apart,
        most_apart=LARGEST_DIFFERENCE,
        work=lambda network: network.encode(pieces),
    )


def cosines_apart(vectors: Vectors, reference: Vectors) -> float:
    """The largest difference of a cosine; infinite where one is not finite."""
    difference = np.abs(vectors @ vectors.T - reference @ reference.T)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")
