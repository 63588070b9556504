"""Sentences of Chinese passages that no training has seen, as they stand and with one number, negation or name changed.

Made for measuring: nothing of it is imported by what trains the verifier. Names are answers that people gave to
questions about the passage, so that what is exchanged for what owes nothing to a pattern of ours.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from metrics.sentences import sentence_spans
from metrics.verifier.sources import kept_back, labelled
from tests.bench.chinese_pairs import Kind, MinimalPair

LONGEST = 330
"""Characters of a passage."""
_NUMBER = re.compile(r"\d+")
_HAS_NOT = re.compile("(?<![并未是])(?:不(?!同|断|過|过|少|仅|僅|久|得|足)|没有|沒有)")
_WILL = "可以|能夠|能够|必須|必须|允許|允许|需要|屬於|属于|包括|支持"
_DID = "參加|参加|獲得|获得"
_VERB = re.compile(f"(?<=[\u4e00-\u9fff])(?:({_WILL})|{_DID})")


def edited_pairs(data: Path, count: int, seed: int = 20261130) -> list[MinimalPair]:
    """At most `count` pairs of each kind, at most one of a passage and kind."""
    rng = random.Random(seed)
    answers: dict[str, list[str]] = {}
    for raw in labelled(data, "zh_qa_positives"):
        if kept_back(str(raw["group"])):
            answers.setdefault(raw["contexts"][0], []).append(raw["answer"])
    texts = list(answers)
    rng.shuffle(texts)
    edits: dict[Kind, Callable[[str, str, Sequence[str], random.Random], str | None]] = {
        "number": _number, "negation": _negation, "name": _name,
    }  # fmt: skip
    found: dict[Kind, list[MinimalPair]] = {kind: [] for kind in edits}
    for text in texts:
        passage = text[: text.rfind("。", 0, LONGEST) + 1]
        spans = [(a, b) for a, b in sentence_spans(passage, 0, len(passage)) if 12 <= b - a <= 90]
        if len(spans) < 3:
            continue
        rng.shuffle(spans)
        for kind, edit in edits.items():
            sentences = (passage[a:b] for a, b in spans)
            made = ((s, f) for s in sentences if (f := edit(s, passage, answers[text], rng)) and f != s)
            true, false = next(made, ("", ""))
            if true and len(found[kind]) < count:
                found[kind].append(MinimalPair(kind, passage, true, false))
    return [pair for of_kind in found.values() for pair in of_kind]


def _number(sentence: str, passage: str, _answers: Sequence[str], rng: random.Random) -> str | None:
    match = next(_NUMBER.finditer(sentence), None)
    if match is None:
        return None
    other = str(int(match[0]) + rng.choice((-3, -2, -1, 1, 2, 3, 10)))
    return None if other in passage else sentence[: match.start()] + other + sentence[match.end() :]


def _negation(sentence: str, _passage: str, _answers: Sequence[str], _rng: random.Random) -> str | None:
    if match := _HAS_NOT.search(sentence):
        gone = "有" if "有" in match[0] else ""
        return sentence[: match.start()] + gone + sentence[match.end() :]
    if match := _VERB.search(sentence):
        return sentence[: match.start()] + ("不" if match[1] else "没有") + sentence[match.start() :]
    return None


def _name(sentence: str, passage: str, answers: Sequence[str], rng: random.Random) -> str | None:
    named = [a for a in dict.fromkeys(answers) if 2 <= len(a) <= 8 and not re.search(r"\d", a)]
    here = [a for a in named if sentence.count(a) == 1]
    others = [a for a in named if a not in sentence and not any(a in h or h in a for h in here) and a in passage]
    return sentence.replace(rng.choice(here), rng.choice(others)) if here and others else None
