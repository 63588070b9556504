"""Which output of a foreign NLI model means what: read from its configuration, proved by known pairs, never assumed.

The order of the classes differs between checkpoints (contradiction first in one, entailment first in another), and
nothing fails where it is guessed wrong: every score is then merely false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from metrics.judge import Label
from metrics.model_files import ModelError

_NAMES = {
    Label.SUPPORTED: ("entailment", "entail", "entails", "entailed", "supported", "supports", "consistent", "faithful"),
    Label.NOT_FOUND: ("neutral", "not entailment", "not entailed", "not enough info", "unsupported", "not supported",
                      "inconsistent", "hallucinated", "hallucination", "unfaithful"),
    Label.CONTRADICTED: ("contradiction", "contradict", "contradicts", "contradicted", "refuted", "refutes"),
}  # fmt: skip


def label_order(id2label: Mapping[int, str], name: str) -> tuple[Label, ...]:
    """What each output of model `name` means, by index. A model of two classes knows no `contradicted`.

    >>> label_order({0: "CONTRADICTION", 1: "entailment", 2: "neutral"}, "a-model")[1]
    <Label.SUPPORTED: 'supported'>

    Raises:
        ModelError: a name that means nothing certain ("LABEL_0"), a missing index, or no `supported`, or two of it.
    """
    found = []
    for index in range(len(id2label)):
        if index not in id2label:
            raise ModelError(f"{name}: id2label has {len(id2label)} entries, but none for output {index}")
        plain = re.sub(r"[\W_]+", " ", id2label[index]).strip().lower()
        meant = [label for label, names in _NAMES.items() if plain in names]
        if not meant:
            raise ModelError(
                f"{name}: the configuration calls output {index} {id2label[index]!r}, which is no name of an NLI class "
                "(entailment, neutral, contradiction, ...): which class it means cannot be known; choose another model"
            )
        found.append(meant[0])
    if len(set(found)) != len(found) or Label.SUPPORTED not in found or len(found) < 2:
        raise ModelError(f"{name}: the classes {', '.join(id2label.values())} are not those of an NLI model")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise and a hypothesis of which everybody knows what is true."""

    language: str
    premise: str
    hypothesis: str
    label: Label


PAIRS = (
    Pair("en", "The shop opens at nine in the morning.", "The shop opens at nine in the morning.", Label.SUPPORTED),
    Pair("en", "Returns are free within thirty days of delivery.", "Returns are free.", Label.SUPPORTED),
    Pair("en", "Dogs are allowed on the ferry.", "Dogs are not allowed on the ferry.", Label.CONTRADICTED),
    Pair("en", "The shop opens at nine in the morning.", "The shop does not open in the morning.", Label.CONTRADICTED),
    Pair("en", "The shop opens at nine in the morning.", "The owner studied law in Lisbon.", Label.NOT_FOUND),
    Pair("en", "Dogs are allowed on the ferry.", "The library has a new roof.", Label.NOT_FOUND),
    Pair("zh", "商店早上九点开门。", "商店早上九点开门。", Label.SUPPORTED),
    Pair("zh", "允许带狗上船。", "不允许带狗上船。", Label.CONTRADICTED),
    Pair("zh", "商店早上九点开门。", "店主曾在里斯本学习法律。", Label.NOT_FOUND),
)
Score = Callable[[Sequence[tuple[str, str]]], Sequence[Mapping[Label, float]]]
"""(premise, hypothesis) pairs to probabilities by label; a model of two classes leaves `contradicted` out."""


def faults(score: Score, languages: Sequence[str] = ("en",)) -> list[str]:
    """What a model gets wrong of the known pairs, one line each; empty when it passes."""
    pairs = [pair for pair in PAIRS if pair.language in languages]
    found = []
    for pair, scores in zip(pairs, score([(p.premise, p.hypothesis) for p in pairs]), strict=True):
        best = max(scores, key=lambda label: scores[label])
        wanted = pair.label
        if Label.CONTRADICTED not in scores and wanted is Label.CONTRADICTED:
            wanted = Label.NOT_FOUND
        if best is not wanted:
            found.append(
                f"{pair.language}: «{pair.hypothesis}» against «{pair.premise}» is {best} ({scores[best]:.2f}), "
                f"not {wanted}"
            )
    return found
