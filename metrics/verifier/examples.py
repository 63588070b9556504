"""What one stage of training reads: passages with claims, from every set that may be trained on, deterministic by seed.

Natural claims come from sentence pairs; made ones are sentences of a passage as they stand, rewritten, edited, or cut
out of it (then it no longer says them), sentences of neighbouring passages, and questions joined with right and wrong
short answers.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from metrics.language import HAN, simplified
from metrics.verifier import sources
from metrics.verifier.edits import FALSE, TRUE, Edit, added, first_that_fits, names_of, renaming
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED, UNSUPPORTED, Claim, Passage

MOST_CLAIMS = 8
"""Claims of one premise in one row."""
LONGEST, LONGEST_WIDE = 1000, 330
"""Characters of a premise (in scripts without spaces), about 250 tokens."""
NOISY_SHARE = 0.35
"""Share of premises that get a passage about something else in front or behind."""

SHARES: Mapping[str, int] = {
    "nli_fever": 15000, "nli_docnli_binary": 8000, "nli_cad_snli": 3500, "nli_mnli_taxi": 4000,
    "nli_climatefever": 2500, "nli_fm2": 2500, "nli_fever_symmetric": 1400, "clapnq_dev": 4500, "halueval_qa": 5000,
    "nomiracl_en": 2500, "nomiracl_zh": 4000, "zh_qa": 11000, "uhgeval_zh": 5500, "wice_spans": 400,
}  # fmt: skip
"""Claims of each source in a stage of 1,000 steps; longer stages take more of each."""

_WIDE = re.compile(f"[{HAN}]")


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


def stage(data: Path, seed: int, share: float, *, kept_back: bool = False) -> list[Passage]:
    """All passages of a stage in the order of training. `share`: 1.0 takes `SHARES`.

    `kept_back` takes the groups that are never trained on instead.
    """
    found: list[Passage] = []
    for name, claims in SHARES.items():
        rng = random.Random(f"{seed} {name}")
        passages = [p for p in _of_source(data, name, rng) if sources.kept_back(p.group) == kept_back]
        found += _taken(sources.unmeasured(data, passages), round(claims * share), rng)
    rng = random.Random(f"{seed} noise")
    rng.shuffle(found)
    return [_noisy(p, found, rng) for p in found]


def balance(passages: Iterable[Passage]) -> Mapping[str, Counter[int]]:
    """How many claims of each label every source gives."""
    counts: dict[str, Counter[int]] = {}
    for passage in passages:
        counts.setdefault(passage.source, Counter()).update(claim.label for claim in passage.claims)
    return counts


def _taken(passages: Sequence[Passage], claims: int, rng: random.Random) -> list[Passage]:
    """Passages in random order until they have so many claims; all of them where there are fewer."""
    order = list(passages)
    rng.shuffle(order)
    found, got = [], 0
    for passage in order:
        if got >= claims:
            break
        found.append(passage)
        got += len(passage.claims)
    return found


def _of_source(data: Path, name: str, rng: random.Random) -> list[Passage]:
    if name == "nli_fever":
        return _with_strangers(_natural(sources.grouped_pairs(data, name), rng), rng)
    if name.startswith("nli_"):
        return _natural(sources.grouped_pairs(data, name), rng)
    material = _MATERIAL[name](data)
    pool = sorted({n for m in rng.sample(material, min(400, len(material))) for n in names_of(m.text)}) or ["-"]
    edits = (*FALSE, renaming(pool))
    return [p for m in material if (p := _made(m, edits, rng)) is not None]


# Natural claims


def _natural(passages: Sequence[Passage], rng: random.Random) -> list[Passage]:
    """Pairs as they are, a few at a time, some supported claims joined by an edited copy of themselves."""
    found = []
    for passage in passages:
        if len(passage.text) > LONGEST * 1.3:
            continue
        claims = list(passage.claims)
        rng.shuffle(claims)
        claims = claims[: MOST_CLAIMS - 2]
        right = [c for c in claims if c.label == SUPPORTED]
        if right and rng.random() < 0.35:
            claims += _edited(rng.choice(right).text, passage.text, FALSE, CONTRADICTED, rng)
        found.append(replace(passage, claims=tuple(claims)))
    return found


def _with_strangers(passages: Sequence[Passage], rng: random.Random) -> list[Passage]:
    """Claims about other evidence as `not_found`, where possible such as share a name with the premise."""
    holders: dict[str, list[int]] = {}
    for at, passage in enumerate(passages):
        for claim in passage.claims[:3]:
            for name in names_of(claim.text):
                holders.setdefault(name, []).append(at)
    found = []
    for at, passage in enumerate(passages):
        own = {c.text for c in passage.claims}
        near = [k for name in names_of(passage.text)[:8] for k in holders.get(name, ())[:40] if k != at]
        strangers = []
        for _ in range(1 + (len(passage.claims) > 3)):
            k = rng.choice(near) if near and rng.random() < 0.7 else rng.randrange(len(passages))
            said = rng.choice(passages[k].claims).text
            if k != at and said not in own and passages[k].text not in passage.text:
                strangers.append(Claim(said, NOT_FOUND))
        found.append(replace(passage, claims=(*passage.claims, *strangers)))
    return found


# Made claims


def _made(material: Material, edits: Sequence[Edit], rng: random.Random) -> Passage | None:
    """Claims of a passage: its sentences as they stand, rewritten, edited or cut out; neighbours'; short answers."""
    wide = bool(_WIDE.search(material.text))
    asked, said = material.asked, material.said
    anchors = [answer for _, answer, _ in asked] + [c.text[:12] for c in said if c.label == SUPPORTED]
    text = simplified(material.text) if wide and rng.random() < 0.3 else material.text
    kept = _window(text, anchors, LONGEST_WIDE if wide else LONGEST, rng)
    if len(kept) < 2:
        return None
    whole = ("" if wide else " ").join(kept)
    claims: list[Claim] = []
    gone: set[int] = set()
    usable = [i for i, s in enumerate(kept) if (10 if wide else 35) <= len(s) <= (110 if wide else 260)]
    question = asked[0][0] if asked else ""
    for i in rng.sample(usable, min(4, len(usable))):
        sentence, kind = kept[i], rng.random()
        if kind < 0.38:
            true = first_that_fits(TRUE, sentence, whole, rng) if rng.random() < 0.5 else None
            claims.append(Claim(true.text if true else sentence, SUPPORTED, ()))
        elif kind < 0.74:
            claims += _edited(
                simplified(sentence) if wide and rng.random() < 0.5 else sentence, whole, edits, CONTRADICTED, rng
            )
        elif kind < 0.82:
            claims += _edited(sentence, whole, (added,), NOT_FOUND, rng)
        elif len(kept) - len(gone) > 2 and not any(a in sentence for a in anchors):
            gone.add(i)
            claims.append(Claim(sentence, NOT_FOUND, ((0, len(sentence)),)))
    if question:
        claims = [replace(c, text=f"{question} {c.text}", spans=_moved(c.spans, len(question) + 1))
                  if rng.random() < 0.15 else c for c in claims]  # fmt: skip
    premise = ("" if wide else " ").join(s for i, s in enumerate(kept) if i not in gone)
    claims += _answers(asked, premise, rng)
    if len(whole) >= len(material.text) * 0.9 and not gone:
        claims += said
    else:
        claims += [replace(c, spans=None) for c in said if c.label != SUPPORTED or c.text in premise]
    if material.beside and rng.random() < 0.6:
        other = sources.sentences(rng.choice(material.beside), 12 if wide else 40, 110 if wide else 260)
        if other and (stranger := rng.choice(other)) not in premise:
            claims.append(Claim(stranger, NOT_FOUND))
    rng.shuffle(claims)
    return Passage(premise, tuple(claims[:MOST_CLAIMS]), material.source, material.group) if claims else None


def _window(text: str, anchors: Sequence[str], limit: int, rng: random.Random) -> list[str]:
    """Neighbouring sentences of at most `limit` characters; among them one with an anchor, where there is one."""
    every = sources.sentences(text, 1, 10_000)
    held = [i for i, s in enumerate(every) if any(a in s for a in anchors)]
    start = end = rng.choice(held) if held else rng.randrange(len(every)) if every else 0
    used = 0
    grew = True
    while grew:
        grew = False
        for at in (end, start - 1):
            if 0 <= at < len(every) and used + len(every[at]) <= limit:
                used += len(every[at])
                end, start = (end + 1, start) if at == end else (end, at)
                grew = True
    return every[start:end]


def _answers(asked: Sequence[tuple[str, str, tuple[str, ...]]], premise: str, rng: random.Random) -> list[Claim]:
    """Questions joined with short answers: the right one, and one that the passage does not give to this question."""
    claims = []
    for question, answer, wrong in asked[:2]:
        if answer not in premise and len(answer) < 30:
            claims.append(Claim(f"{question} {answer}", NOT_FOUND))
            continue
        claims.append(Claim(f"{question} {answer}", SUPPORTED, ()))
        others = [w for w in wrong if w not in answer and answer not in w]
        inside = [w for w in others if w in premise] or others
        if inside:
            new = min(rng.sample(inside, min(4, len(inside))), key=lambda w: abs(len(w) - len(answer)))
            at = len(question) + 1
            claims.append(Claim(f"{question} {new}", UNSUPPORTED, ((at, at + len(new)),)))
    return claims


def _edited(sentence: str, passage: str, edits: Sequence[Edit], label: int, rng: random.Random) -> list[Claim]:
    """The sentence with one edit, sometimes after one that leaves it true; nothing where no edit fits."""
    if rng.random() < 0.25:
        same = first_that_fits(TRUE, sentence, passage, rng)
        sentence = same.text if same else sentence
    changed = first_that_fits(edits, sentence, passage, rng)
    return [Claim(changed.text, label, changed.changed)] if changed else []


def _moved(spans: tuple[sources.Span, ...] | None, by: int) -> tuple[sources.Span, ...] | None:
    return None if spans is None else tuple((a + by, b + by) for a, b in spans)


def _noisy(passage: Passage, others: Sequence[Passage], rng: random.Random) -> Passage:
    """Sometimes a passage about something else in front or behind, so far as the length allows."""
    other = others[rng.randrange(len(others))]
    wide = bool(_WIDE.search(passage.text))
    room = (LONGEST_WIDE if wide else LONGEST) - len(passage.text)
    if rng.random() > NOISY_SHARE or room < 60 or wide != bool(_WIDE.search(other.text)):
        return passage
    if other.group == passage.group or any(c.text in other.text for c in passage.claims):
        return passage  # it could say what a claim was made to miss
    text = other.text[:room]
    joined = f"{text} {passage.text}" if rng.random() < 0.5 else f"{passage.text} {text}"
    return replace(passage, text=joined)


# Passages to make claims of


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


_MATERIAL: Mapping[str, Callable[[Path], list[Material]]] = {
    "clapnq_dev": _clapnq,
    "halueval_qa": _halueval,
    "nomiracl_en": _nomiracl("en"),
    "nomiracl_zh": _nomiracl("zh"),
    "zh_qa": _zh_qa,
    "uhgeval_zh": _uhgeval,
    "wice_spans": _wice,
}
