"""Labelled rows for fitting and measuring the lexical judge, and altered sentences made of them.

The files are JSON lines, gzip, in `labelled/` and `nli/` of a data folder; its README says which may be trained on.
None of their text goes into what is written by the fit.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from metrics.event import Chunk, Event, Turn
from metrics.language import simplified
from metrics.sentences import sentence_spans

LABELLED = (
    "ragtruth_qa_part", "mtrag_part", "expertqa_part", "summedits_part", "wice_claims", "summeval", "begin_v2",
    "faithdial_audit", "q2_wow", "dialfact_small",
)  # fmt: skip
"""Answers with labels that may be fitted on."""
PAIRS = (
    "nli_fever", "nli_fm2", "nli_fever_symmetric", "nli_cad_snli", "nli_mnli_taxi", "nli_climatefever",
    "nli_docnli_binary",
)  # fmt: skip
"""Sentence pairs that may be fitted on."""
FREQUENCIES = ("clapnq_dev", "ragtruth_qa_part", "mtrag_part", "expertqa_part", "wice_claims", "summeval", "uhgeval_zh",
               "zh_qa_positives", "faithdial_audit", "begin_v2", "q2_wow")  # fmt: skip
"""Sets whose contexts are counted for the word frequencies."""
MOST = 800
"""Rows taken of a set of pairs and of each made set."""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer with its contexts. `label`: 1 supported, 0 not. `contradicted`: known to be, known not to be, or None.

    `whole`: the answer is one statement as it stands and is not to be split.
    """

    id: str
    contexts: tuple[str, ...]
    answer: str
    label: int
    group: str
    conversation: tuple[str, ...] = ()
    whole: bool = False
    contradicted: bool | None = None
    question: str | None = None


def event_of(row: Row) -> Event:
    """The row as the QA service would have logged it."""
    turns = tuple(Turn("user", text) for text in row.conversation)
    return Event(row.id, 0.0, None, tuple(Chunk(text) for text in row.contexts), row.answer, conversation=turns)


def fold_of(group: str, folds: int) -> int:
    """The fold of a group: the same in every run, and all rows of a group in one."""
    return int(hashlib.sha256(group.encode()).hexdigest()[:12], 16) % folds


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def labelled(data: Path, name: str) -> list[Row]:
    """All rows of a labelled set that have a label, a context and an answer."""
    rows = []
    for raw in _lines(data / "labelled" / f"{name}.jsonl.gz"):
        contexts = tuple(c for c in raw.get("contexts") or () if c.strip())
        answer = raw.get("answer") or ""
        if raw.get("label") in (0, 1) and contexts and answer.strip():
            turns = _user_turns(raw.get("history"))
            row = Row(str(raw["id"]), contexts, answer, int(raw["label"]), str(raw.get("group")), turns)
            rows.append(replace(row, question=raw.get("question")))
    return rows


def texts(data: Path, name: str) -> Iterator[str]:
    """The contexts of a labelled set, in order."""
    for raw in _lines(data / "labelled" / f"{name}.jsonl.gz"):
        yield from raw.get("contexts") or ()


def _user_turns(history: object) -> tuple[str, ...]:
    if not isinstance(history, str):
        return ()
    return tuple(line.removeprefix("user: ") for line in history.split("\n") if line.startswith("user: "))


def pairs(data: Path, name: str) -> list[Row]:
    """At most `MOST` rows of a set of sentence pairs, chosen at random with a fixed seed."""
    raw = [r for r in _lines(data / "nli" / f"{name}.jsonl.gz") if r["premise"].strip() and r["hypothesis"].strip()]
    random.Random(name).shuffle(raw)
    known = {"contradiction": True, "neutral": False}
    return [
        Row(
            f"{name}-{k}",
            (r["premise"],),
            r["hypothesis"],
            int(r["label"] == "entailment"),
            hashlib.sha256(r["premise"].encode()).hexdigest(),
            whole=True,
            contradicted=known.get(r["label"]),
        )
        for k, r in enumerate(raw[:MOST])
    ]


def chinese_answers(data: Path) -> list[Row]:
    """Short Chinese answers with the passage that holds them, and with the most similar passage that does not."""
    rng = random.Random("chinese answers")
    raw = list(_lines(data / "labelled" / "zh_qa_positives.jsonl.gz"))
    rng.shuffle(raw)
    raw = raw[: MOST // 2]
    texts = [simplified(r["contexts"][0]) for r in raw]
    grams = [{text[i : i + 2] for i in range(len(text) - 1)} for text in texts]
    rows = []
    for k, r in enumerate(raw):
        question, answer = simplified(r["question"]), simplified(r["answer"])
        asked = {question[i : i + 2] for i in range(len(question) - 1)}
        others = [j for j, o in enumerate(raw) if o["group"] != r["group"] and answer not in texts[j]]
        wrong = max(others, key=lambda j: len(asked & grams[j]))
        for label, at in ((1, k), (0, wrong)):
            rows.append(
                Row(f"zh-{k}-{label}", (raw[at]["contexts"][0],), r["answer"], label, str(r["group"]), whole=True)
            )
    return rows


Edit = Callable[[str, str, random.Random], str | None]


def altered(data: Path, names: Sequence[str], edits: Sequence[Edit], lengths: tuple[int, int]) -> list[Row]:
    """Sentences of contexts as they stand (supported) and with one thing changed (contradicted)."""
    rng = random.Random(" ".join(names))
    rows: list[Row] = []
    for name in names:
        raw = [r for r in _lines(data / "labelled" / f"{name}.jsonl.gz") if r.get("contexts")]
        rng.shuffle(raw)
        got = 0
        seen: set[str] = set()
        for r in raw:
            text = rng.choice(r["contexts"])
            spans = [s for s in sentence_spans(text, 0, len(text)) if lengths[0] < s[1] - s[0] < lengths[1]]
            if len(spans) < 3 or text in seen or got >= MOST // 2 // len(names):
                continue
            seen.add(text)
            start, end = rng.choice(spans)
            sentence = " ".join(text[start:end].split())
            changed = next((c for edit in rng.sample(edits, len(edits)) if (c := edit(sentence, text, rng))), None)
            if changed is None or changed == sentence:
                continue
            got += 1
            group = f"{name}-{r.get('group')}"
            for label, answer in ((1, sentence), (0, changed)):
                known = None if label else True
                key = f"{group}-{got}-{label}"
                rows.append(Row(key, tuple(r["contexts"]), answer, label, group, whole=True, contradicted=known))
    return rows


def altered_english(data: Path) -> list[Row]:
    sets = ("clapnq_dev", "ragtruth_qa_part", "wice_claims", "summeval", "q2_wow", "begin_v2")
    return altered(data, sets, (other_number, not_english, opposite_english, other_name, swapped_names), (40, 250))


def altered_chinese(data: Path) -> list[Row]:
    return altered(data, ("uhgeval_zh", "zh_qa_positives"), (other_number, not_chinese, opposite_chinese), (12, 120))


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_VERB = re.compile(r"\b(?:is|are|was|were|can|will|does|did|has|have|could|should)\b( not)?")
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{2,}")
_CHINESE_VERB = re.compile("可以|能够|已经|是|会|将|有")
_CHINESE_NOT = {
    "可以": "不可以",
    "能够": "不能够",
    "已经": "没有",
    "是": "不是",
    "会": "不会",
    "将": "不会",
    "有": "没有",
}
_ENGLISH_OPPOSITES = (
    ("increase", "decrease"), ("increased", "decreased"), ("before", "after"), ("more", "less"), ("first", "last"),
    ("high", "low"), ("open", "closed"), ("include", "exclude"), ("largest", "smallest"), ("won", "lost"),
    ("rose", "fell"), ("allowed", "prohibited"), ("above", "below"), ("early", "late"),
)  # fmt: skip
_CHINESE_OPPOSITES = (
    ("增加", "减少"), ("上升", "下降"), ("增长", "下降"), ("最高", "最低"), ("最大", "最小"), ("开始", "结束"),
    ("成功", "失败"), ("支持", "反对"), ("之前", "之后"), ("以上", "以下"), ("允许", "禁止"), ("上午", "下午"),
)  # fmt: skip


def other_number(sentence: str, _text: str, rng: random.Random) -> str | None:
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    m = rng.choice(found)
    digits = "".join(str(rng.randint(1, 9)) if c.isdigit() else c for c in m[0])
    return sentence[: m.start()] + digits + sentence[m.end() :]


def not_english(sentence: str, _text: str, _rng: random.Random) -> str | None:
    m = _VERB.search(sentence)
    if not m:
        return None
    verb = m[0].removesuffix(" not") if m[1] else m[0] + " not"
    return sentence[: m.start()] + verb + sentence[m.end() :]


def not_chinese(sentence: str, _text: str, _rng: random.Random) -> str | None:
    m = _CHINESE_VERB.search(sentence)
    return sentence[: m.start()] + _CHINESE_NOT[m[0]] + sentence[m.end() :] if m else None


def opposite_english(sentence: str, _text: str, _rng: random.Random) -> str | None:
    return _opposite(sentence, _ENGLISH_OPPOSITES, r"\b")


def opposite_chinese(sentence: str, _text: str, _rng: random.Random) -> str | None:
    return _opposite(simplified(sentence), _CHINESE_OPPOSITES, "")


def _opposite(sentence: str, table: Sequence[tuple[str, str]], border: str) -> str | None:
    for one, other in table:
        for a, b in ((one, other), (other, one)):
            found = re.search(f"{border}{a}{border}", sentence)
            if found:
                changed: str = sentence[: found.start()] + b + sentence[found.end() :]
                return changed
    return None


def other_name(sentence: str, text: str, rng: random.Random) -> str | None:
    here = list(_NAME.finditer(sentence))
    others: list[str] = sorted({name for name in _NAME.findall(text) if name not in sentence})
    if not here or not others:
        return None
    m = rng.choice(here)
    return sentence[: m.start()] + rng.choice(others) + sentence[m.end() :]


def swapped_names(sentence: str, _text: str, _rng: random.Random) -> str | None:
    found = list(_NAME.finditer(sentence))
    if len(found) < 2 or found[0][0] == found[-1][0] or " and " in sentence[found[0].end() : found[-1].start()]:
        return None
    one, other = found[0], found[-1]
    between = sentence[one.end() : other.start()]
    return sentence[: one.start()] + other[0] + between + one[0] + sentence[other.end() :]
