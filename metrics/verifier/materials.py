"""Passages to make claims of, from the sets that have passages but few claims, or answers of which only parts are known
to be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metrics.verifier import sources
from metrics.verifier.edits import names_of
from metrics.verifier.sources import SUPPORTED, UNSUPPORTED, Claim


@dataclass(frozen=True, slots=True)
class Material:
    """A passage to make claims of. `asked`: (question, right answer, wrong answers) about it. `beside`: passages on the
    same subject that say other things."""

    text: str
    source: str
    group: str
    asked: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    said: tuple[Claim, ...] = ()
    beside: tuple[str, ...] = ()


def _clapnq(data: Path) -> list[Material]:
    found = []
    for raw in sources.labelled(data, "clapnq_dev"):
        text = sources.tidy(" ".join(raw["contexts"]))
        said: list[Claim] = []
        if raw["answer"]:
            said = [Claim(s, SUPPORTED, ()) for s in sources.sentences(raw["answer"], 30, 300)[:2]]
        # An answer draws on the whole passage: it is kept only where the passage is taken whole.
        found.append(Material(text, "clapnq_dev", str(raw["group"]), said=tuple(said)))
    return found


def _halueval(data: Path) -> list[Material]:
    rows: dict[str, dict[int, str]] = {}
    first = {}
    for raw in sources.labelled(data, "halueval_qa"):
        rows.setdefault(str(raw["group"]), {})[raw["label"]] = raw["answer"]
        first[str(raw["group"])] = raw
    found = []
    for group, answers in rows.items():
        raw = first[group]
        text = sources.tidy(" ".join(raw["contexts"]))
        right, wrong = answers.get(1, ""), answers.get(0, "")
        said = [Claim(wrong, UNSUPPORTED)] if wrong and int(sources.digest(group), 16) % 3 == 0 else []
        if right and len(right) < 60:
            names = tuple(n for n in names_of(text) if right not in n and n not in right)
            asked = ((raw["question"], right, names),) if right in text else ()
            found.append(Material(text, "halueval_qa", group, asked, tuple(said)))
    return found


def _nomiracl(language: str) -> Callable[[Path], list[Material]]:
    def read(data: Path) -> list[Material]:
        found = []
        for raw in sources.labelled(data, "nomiracl_zh_en"):
            if raw["lang"] == language:
                texts = [sources.tidy(c) for c in raw["contexts"]]
                for i, text in enumerate(texts):
                    beside = tuple(texts[:i] + texts[i + 1 :])
                    found.append(Material(text, f"nomiracl_{language}", str(raw["group"]), beside=beside))
        return found

    return read


def _zh_qa(data: Path) -> list[Material]:
    by_text: dict[str, list[tuple[str, str]]] = {}
    groups = {}
    for raw in sources.labelled(data, "zh_qa_positives"):
        text = raw["contexts"][0]
        by_text.setdefault(text, []).append((raw["question"], raw["answer"]))
        groups[text] = str(raw["group"])
    found = []
    texts = list(by_text)
    for k, (text, asked) in enumerate(by_text.items()):
        numbers = tuple(dict.fromkeys(re.findall(r"\d+年|\d+", text)))
        names = (*names_of(text), *numbers)
        answers = tuple(answer for _, answer in asked)
        triples = tuple(
            (q, a, tuple(w for w in (*answers, *_kin(a, names, numbers, text)) if w != a)) for q, a in asked
        )
        found.append(Material(text, "zh_qa", groups[text], triples, beside=(texts[k - 1],)))
    return found


def _kin(answer: str, names: Sequence[str], numbers: Sequence[str], text: str) -> tuple[str, ...]:
    """Wrong answers of the right one's kind: numbers for a number, else names, else a stretch of the text as long."""
    if any(c.isdigit() for c in answer):
        return tuple(n for n in numbers if n not in answer)
    kin = tuple(n for n in names if not any(c.isdigit() for c in n))
    step = max(len(text) // 5, 1)
    stretches = tuple(
        text[i : i + len(answer)].strip("，。、；：「」“”（） ") for i in range(7, len(text) - len(answer), step)
    )
    return kin + tuple(s for s in stretches if len(s) > 1 and not re.search("[，。、；：]", s))


def _uhgeval(data: Path) -> list[Material]:
    found = []
    for raw in sources.labelled(data, "uhgeval_zh"):
        text = sources.tidy(" ".join(raw["contexts"]))
        spans = tuple((s["start"], s["end"]) for s in raw["spans"])
        said = [Claim(raw["answer"][:200], UNSUPPORTED, spans)]
        real = sources.tidy(raw["real_continuation"] or "")
        if 8 < len(real) < 150 and real in text:
            said.append(Claim(real, SUPPORTED, ()))
        found.append(Material(text, "uhgeval_zh", str(raw["group"]), said=tuple(said)))
    return found


def _wice(data: Path) -> list[Material]:
    found = []
    for raw in sources.labelled(data, "wice_spans"):
        if raw["split"] == "train":
            spans = tuple((s["start"], s["end"]) for s in raw["spans"])
            text = sources.tidy(" ".join(raw["contexts"]))
            found.append(
                Material(text, "wice_spans", str(raw["group"]), said=(Claim(raw["answer"], UNSUPPORTED, spans),))
            )
    return found


MATERIALS: Mapping[str, Callable[[Path], list[Material]]] = {
    "clapnq_dev": _clapnq,
    "halueval_qa": _halueval,
    "nomiracl_en": _nomiracl("en"),
    "nomiracl_zh": _nomiracl("zh"),
    "zh_qa": _zh_qa,
    "uhgeval_zh": _uhgeval,
    "wice_spans": _wice,
}
