"""Which labelled answers are judged: balanced, of five sets, picked by a fixed seed before anything was run.

The cases of development (prompts are mended on them) share no group, a question or a document, with those of the
comparison.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metrics.statements import claims_of

COMPARED = {"attributionbench": 18, "lfqa_sentences": 12, "lfqa_responses": 6, "rgb_pairs": 12, "halueval_qa": 12}
"""Cases a label of each set, 120 in all: cited claims, sentences of long answers, whole answers, short Chinese answers,
answers with an invented detail. All have a question, which ragas cannot do without, and the lexical judge, which has a
voice in ours, was fitted on none of them."""
DEVELOPED = {"attributionbench": 6, "lfqa_sentences": 4, "rgb_pairs": 5, "halueval_qa": 5}
"""The same of the cases that prompts were mended on."""
LONGER = {"ragtruth_qa_part": 10, "lfqa_responses": 10}
"""Answers a label for the study of the split: of LLMs to real questions, labelled as wholes. The weights of the lexical
judge were fitted on the first set, among others."""
SENTENCES = range(3, 7)
"""Of such an answer, as the rules split it."""
SEED = "groundwatch-llm-judge-1"
TRIED = Path(__file__).with_name("tried.txt")
"""Ids that the first prompts were tried on; their documents are left out of the comparison."""
ANSWER_CHARS = 650
CONTEXT_CHARS = {"en": 1900, "zh": 800}
"""Longer ones are left out, so that two cores can do 120 cases in an hour."""
LONGER_CHARS = 900, 2500
"""The same of the answers of several sentences."""


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
    return _mixed(chosen, COMPARED)


def development(data: Path) -> list[Case]:
    """Cases of the same sets, of groups that no case of the comparison is of."""
    groups = {_document(case) for case in compared(data)}
    found = (
        case
        for name, per_label in DEVELOPED.items()
        for case in _balanced([c for c in _ordered(data, name) if _document(c) not in groups], per_label)
    )
    return _mixed(found, COMPARED)


def longer(data: Path) -> list[Case]:
    """Answers of several sentences, of documents that no case of the comparison is about."""
    groups = {_document(case) for case in compared(data)}
    chosen: list[Case] = []
    for name, per_label in LONGER.items():
        ordered = [case for case in _ordered(data, name, LONGER_CHARS) if _document(case) not in groups]
        several = [case for case in ordered if len(claims_of(case.answer).statements) in SENTENCES]
        chosen += _balanced(several, per_label)
    return _mixed(chosen, LONGER)


def _mixed(cases: Iterable[Case], per_label: Mapping[str, int]) -> list[Case]:
    """Sets and labels in turn, so that the cases of a run that is cut short are balanced too."""
    turns: dict[tuple[str, int], int] = {}
    placed = []
    for case in cases:
        kind = (case.set, case.label)
        turns[kind] = turns.get(kind, 0) + 1
        most = per_label[case.set]
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


def _ordered(data: Path, name: str, most: tuple[int, int] | None = None) -> list[Case]:
    """Every fit row of a set, in the order of a seeded hash; `most` characters of answer and context."""
    with gzip.open(data / "labelled" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [case for line in lines if (case := _case(name, json.loads(line), most)) is not None]
    return sorted(found, key=_seeded)


def _seeded(case: Case) -> bytes:
    return hashlib.sha256(f"{SEED}/{case.id}".encode()).digest()


def _case(name: str, raw: dict[str, Any], most: tuple[int, int] | None) -> Case | None:
    contexts = tuple(text for text in raw.get("contexts") or () if text.strip())
    question, answer, language = raw.get("question") or "", raw.get("answer") or "", raw.get("lang", "en")
    answer_chars, context_chars = most or (ANSWER_CHARS, CONTEXT_CHARS.get(language, 0))
    fits = len(answer) <= answer_chars and sum(map(len, contexts)) <= context_chars
    if raw.get("label") not in (0, 1) or not (question.strip() and answer.strip() and contexts and fits):
        return None
    return Case(str(raw["id"]), name, str(raw["group"]), language, int(raw["label"]), question, contexts, answer)
