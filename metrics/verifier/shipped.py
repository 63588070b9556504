"""The verifier that ships with the package: its two files, and the proof at start that it judges what it should."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from metrics.encoder import Encoder, Precision, load_encoder
from metrics.judge import Label
from metrics.model_files import ModelError
from metrics.tokens import Tokens, read_tokens
from metrics.verifier import joined as joined_file
from metrics.verifier import weights_file
from metrics.verifier.joined import Joined
from metrics.verifier.label_order import faults
from metrics.verifier.loading import verifier_over
from metrics.verifier.network import CLASSES, FROZEN
from metrics.verifier.packed import PackedNetwork
from metrics.verifier.reader import Opinions
from metrics.verifier.shipped_files import FOLDER, checked_files
from metrics.verifier.weights_file import Trained

log = logging.getLogger(__name__)

LANGUAGES = ("en", "zh")
_ORDER = tuple(Label(name) for name in CLASSES)


@dataclass(frozen=True, slots=True)
class Shipped:
    """Trained weights, what joins them with words, and the SHA-256 of the weights' file."""

    trained: Trained
    joined: Joined
    sha256: str


@dataclass(frozen=True, slots=True)
class Base:
    """The model above which the trained layers stand."""

    encoder: Encoder
    tokens: Tokens


def read_shipped(folder: Path = FOLDER) -> Shipped:
    """Both files, after their checksum.

    Raises:
        ModelError: not in this installation, damaged, or not of one another.
    """
    files = checked_files(folder)
    return Shipped(weights_file.read(files.weights), joined_file.read(files.joined), files.sha256)


def base_in(folder: Path, precision: Precision) -> Base:
    """The base on its own, without the layers that the verifier has its own of.

    Raises:
        ModelError: the folder holds no complete model.
    """
    whole = load_encoder(folder, precision)
    lower = replace(whole.weights, layers=whole.weights.layers[:FROZEN])
    return Base(Encoder(whole.network, lower, precision), read_tokens(folder))


def proven(
    trained: Trained, base: Base, precision: Precision, exact: Callable[[], Base]
) -> tuple[PackedNetwork, Precision]:
    """The trained layers in `precision` over `base`, proved by known pairs in English and Chinese; in float32 over
    `exact`, which is asked for only then, where nothing but the precision is at fault.

    Raises:
        ModelError: known pairs come out wrong in float32 too.
    """
    network = over(trained, base, precision)
    wrong = faults(scores_by(network), LANGUAGES)
    if wrong and (precision, base.encoder.precision) != ("fp32", "fp32"):
        network, inexact = over(trained, exact(), "fp32"), wrong
        wrong = faults(scores_by(network), LANGUAGES)
        if not wrong:
            log.warning("the verifier runs in fp32, as known pairs come out wrong in %s: %s", precision, inexact[0])
            precision = "fp32"
    if wrong:
        raise ModelError(
            f"the local verifier does not judge known pairs as everybody would, so it is not used: {'; '.join(wrong)}; "
            "reinstall groundwatch, or set judge.kind = 'lexical'"
        )
    return network, precision


def over(trained: Trained, base: Base, precision: Precision) -> PackedNetwork:
    """The trained layers in `precision` over those of the base, which keep theirs."""
    return PackedNetwork(verifier_over(base.encoder, trained.parameters, precision), base.tokens)


def scores_by(network: Opinions) -> Callable[[Sequence[tuple[str, str]]], list[Mapping[Label, float]]]:
    """A network of ours, as `metrics.verifier.label_order` asks one."""

    def score(pairs: Sequence[tuple[str, str]]) -> list[Mapping[Label, float]]:
        said = network.opinions([(premise, [statement]) for premise, statement in pairs])
        return [dict(zip(_ORDER, own[0].classes, strict=True)) for own in said]

    return score
