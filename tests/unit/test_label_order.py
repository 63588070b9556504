"""The meaning of a foreign model's outputs: read from its configuration, and proved by known pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from metrics.judge import Label
from metrics.model_files import ModelError
from metrics.verifier.label_order import PAIRS, faults, label_order

# Labels of foreign models


@pytest.mark.parametrize("order", list(itertools.permutations(("ENTAILMENT", "neutral", "Contradiction"))))
def test_field_case_41_the_order_of_labels_is_read_from_the_configuration(order: tuple[str, ...]) -> None:
    found = label_order(dict(enumerate(order)), "m")
    assert [label.value for label in found] == [
        {"ENTAILMENT": "supported", "neutral": "not_found", "Contradiction": "contradicted"}[name] for name in order
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("entailment", "entails"),
        ("neutral", "contradiction"),
        ("positive", "negative"),
    ],
)
def test_field_case_41_unknown_names_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match="m: "):
        label_order(dict(enumerate(names)), "m")


def test_models_of_two_classes_are_understood() -> None:
    assert label_order({0: "entailment", 1: "not_entailment"}, "m") == (Label.SUPPORTED, Label.NOT_FOUND)
    assert label_order({0: "hallucinated", 1: "consistent"}, "m") == (Label.NOT_FOUND, Label.SUPPORTED)


def test_known_pairs_prove_the_order() -> None:
    truth = {(p.premise, p.hypothesis): p.label for p in PAIRS}

    def right(pairs: Sequence[tuple[str, str]]) -> list[dict[Label, float]]:
        return [{label: 0.9 if truth[pair] is label else 0.05 for label in Label} for pair in pairs]

    def turned(pairs: Sequence[tuple[str, str]]) -> list[dict[Label, float]]:
        swap = {Label.SUPPORTED: Label.CONTRADICTED, Label.CONTRADICTED: Label.SUPPORTED}
        return [{swap.get(label, label): value for label, value in scores.items()} for scores in right(pairs)]

    def binary(pairs: Sequence[tuple[str, str]]) -> list[dict[Label, float]]:
        return [{Label.SUPPORTED: s[Label.SUPPORTED], Label.NOT_FOUND: 1 - s[Label.SUPPORTED]} for s in right(pairs)]

    assert faults(right, ("en", "zh")) == []
    assert faults(binary) == []
    assert len(faults(turned)) == sum(p.language == "en" and p.label is not Label.NOT_FOUND for p in PAIRS)
