"""Which labelled answers are judged: balanced, of five sets, picked by a fixed seed before anything was run.

The cases of development (prompts are mended on them) share no group, a question or a document, with those of the
comparison.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARED = {"attributionbench": 18, "lfqa_sentences": 12, "lfqa_responses": 6, "rgb_pairs": 12, "halueval_qa": 12}
"""Cases a label of each set, 120 in all: cited claims, sentences of long answers, whole answers, short Chinese answers,
answers with an invented detail. All have a question, which ragas cannot do without, and the lexical judge, which has a
voice in ours, was fitted on none of them."""
DEVELOPED = {"attributionbench": 6, "lfqa_sentences": 4, "rgb_pairs": 5, "halueval_qa": 5}
"""The same of the cases that prompts were mended on."""
SEED = "groundwatch-llm-judge-1"
TRIED = Path(__file__).with_name("tried.txt")
"""Ids that the first prompts were tried on; their documents are left out of the comparison."""
ANSWER_CHARS = 650
CONTEXT_CHARS = {"en": 1900, "zh": 800}
"""Longer ones are left out, so that two cores can do 120 cases in an hour."""


@dataclass(frozen=True, slots=True)
class Case:
    """`label`: 1 every statement of the answer is supported by the contexts, 0 not."""

    id: str
    set: str
    group: str
    language: str
    label: int
    question: str
    contexts: tuple[str, ...]
    answer: str


def compared(data: Path) -> list[Case]:
    """The cases of the comparison: as many supported as unsupported ones of each set, one a group."""
    tried = set(TRIED.read_text(encoding="utf-8").split())
    chosen = []
    for name, per_label in COMPARED.items():
        ordered = _ordered(data, name)
        known = {_document(case) for case in ordered if case.id in tried}
        chosen += _balanced([case for case in ordered if _document(case) not in known], per_label)
    return _mixed(chosen)


def development(data: Path) -> list[Case]:
    """Cases of the same sets, of groups that no case of the comparison is of."""
    groups = {_document(case) for case in compared(data)}
    return _mixed(
        case
        for name, per_label in DEVELOPED.items()
        for case in _balanced([c for c in _ordered(data, name) if _document(c) not in groups], per_label)
    )


def _mixed(cases: Iterable[Case]) -> list[Case]:
    """Sets and labels in turn, so that the cases of a run that is cut short are balanced too."""
    turns: dict[tuple[str, int], int] = {}
    placed = []
    for case in cases:
        kind = (case.set, case.label)
        turns[kind] = turns.get(kind, 0) + 1
        most = COMPARED[case.set]
        placed.append((turns[kind] / most, case.set, case.label, case))
    return [case for *_, case in sorted(placed, key=lambda item: item[:3])]


def _document(case: Case) -> tuple[str, str]:
    """What a case is about; the two sets of lfqa share theirs."""
    return case.set.partition("_")[0], case.group


def _balanced(ordered: Sequence[Case], per_label: int) -> list[Case]:
    """The rarer label picks its groups first, so that a set with few unsupported answers is balanced all the same."""
    counts = [sum(case.label == label for case in ordered) for label in (0, 1)]
    used: set[str] = set()
    chosen: list[Case] = []
    for label in sorted((0, 1), key=lambda label: counts[label]):
        found = [case for case in _one_a_group(ordered, label) if case.group not in used][:per_label]
        if len(found) < per_label:
            raise ValueError(f"{len(found)} cases with label {label}, {per_label} are wanted")
        used.update(case.group for case in found)
        chosen += found
    return chosen


def _one_a_group(ordered: Sequence[Case], label: int) -> Iterator[Case]:
    seen: set[str] = set()
    for case in ordered:
        if case.label == label and case.group not in seen:
            seen.add(case.group)
            yield case


def _ordered(data: Path, name: str) -> list[Case]:
    """Every fit row of a set, in the order of a seeded hash."""
    with gzip.open(data / "labelled" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [case for line in lines if (case := _case(name, json.loads(line))) is not None]
    return sorted(found, key=lambda case: hashlib.sha256(f"{SEED}/{case.id}".encode()).digest())


def _case(name: str, raw: dict[str, Any]) -> Case | None:
    contexts = tuple(text for text in raw.get("contexts") or () if text.strip())
    question, answer, language = raw.get("question") or "", raw.get("answer") or "", raw.get("lang", "en")
    fits = len(answer) <= ANSWER_CHARS and sum(map(len, contexts)) <= CONTEXT_CHARS.get(language, 0)
    if raw.get("label") not in (0, 1) or not (question.strip() and answer.strip() and contexts and fits):
        return None
    return Case(str(raw["id"]), name, str(raw["group"]), language, int(raw["label"]), question, contexts, answer)
