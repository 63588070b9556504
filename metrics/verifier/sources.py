"""Reads the labelled sets and sentence pairs as passages with claims, and keeps apart what is measured on.

No passage of a set that the verifier is measured on is made into examples, nor one that shares a sentence with them; of
the others a tenth of the groups is kept back for looking at progress. (`people` reads those of them that may be trained
on for the last stage, by folds.)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from metrics.sentences import sentence_spans

SUPPORTED, NOT_FOUND, CONTRADICTED, UNSUPPORTED = 0, 1, 2, 3
"""Labels of claims. The first three are the classes; `UNSUPPORTED` is one of the last two, unknown which."""

MEASURED = (
    "attributionbench", "lfqa_sentences", "lfqa_responses", "wice_claims", "begin_v2", "faithdial_audit", "q2_wow",
    "qags", "gofigure", "falke_rank19", "summeval", "rgb_pairs", "ragtruth_qa_part", "mtrag_part", "expertqa_part",
    "summedits_part", "dialfact_small",
)  # fmt: skip
"""Labelled sets that no examples are made of."""
MEASURED_PAIRS = ("nli_ocnli_zh",)
KEPT_BACK = 10
"""One group in so many is kept back."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Claim:
    """`spans`: character spans of the unsupported parts, () where there are none, None where they are not known."""

    text: str
    label: int
    spans: tuple[Span, ...] | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A premise with claims about it. `group`: what must not be divided between training and measuring."""

    text: str
    claims: tuple[Claim, ...]
    source: str
    group: str


def kept_back(group: str) -> bool:
    """Whether a group is for looking at progress, not for training: the same in every run."""
    return int(hashlib.sha256(f"kept back {group}".encode()).hexdigest()[:12], 16) % KEPT_BACK == 0


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def labelled(data: Path, name: str) -> Iterator[dict[str, Any]]:
    return lines(data / "labelled" / f"{name}.jsonl.gz")


def pairs(data: Path, name: str) -> Iterator[dict[str, Any]]:
    return lines(data / "nli" / f"{name}.jsonl.gz")


_LABELS = {"entailment": SUPPORTED, "neutral": NOT_FOUND, "contradiction": CONTRADICTED, "not_entailment": UNSUPPORTED}


SCENES = frozenset({"nli_cad_snli"})
"""Sets whose contradictions are such only if both sentences are of one scene: of a passage they say «not supported»."""


def grouped_pairs(data: Path, name: str) -> list[Passage]:
    """Sentence pairs by premise, in file order."""
    found: dict[str, list[Claim]] = {}
    for raw in pairs(data, name):
        premise, claim = tidy(raw["premise"]), tidy(raw["hypothesis"])
        if premise and claim:
            label = _LABELS[raw["label"]]
            if label == CONTRADICTED and name in SCENES:
                label = UNSUPPORTED
            found.setdefault(premise, []).append(Claim(claim, label, () if label == SUPPORTED else None))
    return [Passage(text, tuple(claims), name, digest(text)) for text, claims in found.items()]


def tidy(text: str) -> str:
    """One line, with the bracket tokens of old treebank texts written as brackets."""
    for token, mark in (("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]")):
        text = text.replace(token, mark)
    return " ".join(text.split())


def sentences(text: str, shortest: int, longest: int) -> list[str]:
    """Sentences of a text with `shortest` to `longest` characters, as one line each."""
    return [
        s for a, b in sentence_spans(text, 0, len(text)) if shortest <= len(s := " ".join(text[a:b].split())) <= longest
    ]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=4)
def measured_sentences(data: Path) -> frozenset[str]:
    """Keys of all sentences of the contexts that the verifier is measured on."""
    contexts = (c for name in MEASURED for raw in labelled(data, name) for c in raw.get("contexts") or ())
    premises = (raw["premise"] for name in MEASURED_PAIRS for raw in pairs(data, name))
    return keys_of(chain(contexts, premises))


def unmeasured(data: Path, passages: Iterable[Passage]) -> list[Passage]:
    """The passages that share no sentence with anything measured on."""
    known = measured_sentences(data)
    return [p for p in passages if known.isdisjoint(_keys(p.text))]


def keys_of(texts: Iterable[str]) -> frozenset[str]:
    """What tells that another text has a sentence of these in it."""
    return frozenset(chain.from_iterable(map(_keys, texts)))


_LETTERS = re.compile(r"[\W_]+")


def _keys(text: str) -> Iterator[str]:
    """Long sentences by their letters and digits alone; short ones («See also») prove nothing."""
    for start, end in sentence_spans(text, 0, len(text)):
        key = _LETTERS.sub("", text[start:end].lower())
        if len(key) >= (32 if key.isascii() else 12):
            yield key
