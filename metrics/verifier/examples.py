"""What one stage of training reads: passages with claims, from every set that may be trained on, deterministic by seed.

Natural claims come from sentence pairs; made ones are sentences of a passage as they stand, rewritten, edited, or cut
out of it (then it no longer says them), sentences of neighbouring passages, and questions joined with right and wrong
short answers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from metrics.verifier import sources
from metrics.verifier.edits import FALSE, names_of, renaming
from metrics.verifier.made import LONGEST, MOST_CLAIMS, edited, is_wide, made_of, room
from metrics.verifier.materials import MATERIALS
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED, Claim, Passage
from metrics.verifier.switched import cedict, dictionary_of, switched

UNRELATED = 0.3
"""Share of premises of sentence pairs that get a claim about something else."""
NOISY_SHARE = 0.35
"""Share of premises that get a passage about something else in front or behind."""

SHARES: Mapping[str, int] = {
    "nli_fever": 15000, "nli_docnli_binary": 9000, "nli_cad_snli": 6000, "nli_mnli_taxi": 6000,
    "nli_climatefever": 2500, "nli_fm2": 2500, "nli_fever_symmetric": 1400, "clapnq_dev": 4500, "halueval_qa": 4500,
    "nomiracl_en": 2500, "nomiracl_zh": 3500, "zh_qa": 12000, "uhgeval_zh": 4500, "wice_spans": 400,
}  # fmt: skip
"""Claims of each source in a stage of 1,000 steps; longer stages take more of each."""


def stage(data: Path, seed: int, share: float, *, kept_back: bool = False) -> list[Passage]:
    """All passages of a stage in the order of training. `share`: 1.0 takes `SHARES`.

    `kept_back` takes the groups that are never trained on instead.
    """
    found: list[Passage] = []
    for name, claims in SHARES.items():
        rng = random.Random(f"{seed} {name}")
        passages = [p for p in _of_source(data, name, rng) if sources.kept_back(p.group) == kept_back]
        found += _taken(sources.unmeasured(data, passages), round(claims * share), rng)
    if not kept_back:
        found = _in_two_languages(found, random.Random(f"{seed} switched"))
    rng = random.Random(f"{seed} noise")
    rng.shuffle(found)
    return [_noisy(p, found, rng) for p in found]


def _in_two_languages(passages: Sequence[Passage], rng: random.Random) -> list[Passage]:
    """Part of the sentence pairs, which are all English, in Chinese words, such as the Chinese passages use."""
    dictionary = dictionary_of(cedict(), [p.text for p in passages if is_wide(p.text)])
    pairs = [p for p in passages if p.source.startswith("nli_")]
    return [*switched(pairs, dictionary, rng), *(p for p in passages if not p.source.startswith("nli_"))]


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
        return _unrelated(_natural(sources.grouped_pairs(data, name), rng), rng)
    material = MATERIALS[name](data)
    pool = sorted({n for m in rng.sample(material, min(400, len(material))) for n in names_of(m.text)}) or ["-"]
    edits = (*FALSE, renaming(pool))
    return [p for m in material if (p := made_of(m, edits, rng)) is not None]


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
            claims += edited(rng.choice(right).text, passage.text, FALSE, CONTRADICTED, rng)
        found.append(replace(passage, claims=tuple(claims)))
    return found


def _unrelated(passages: Sequence[Passage], rng: random.Random) -> list[Passage]:
    """Sometimes a claim about something else altogether, as `not_found`: pairs of sentences are always about one scene,
    and a network that sees no others calls what is unrelated a contradiction."""
    found = []
    for at, passage in enumerate(passages):
        k = rng.randrange(len(passages))
        said = rng.choice(passages[k].claims)
        apart = k != at and not set(names_of(said.text)) & set(names_of(passage.text))
        strange = (Claim(said.text, NOT_FOUND),) if apart and rng.random() < UNRELATED else ()
        found.append(replace(passage, claims=(*passage.claims, *strange)))
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


def _noisy(passage: Passage, others: Sequence[Passage], rng: random.Random) -> Passage:
    """Sometimes a passage about something else in front or behind, so far as the length allows."""
    other = others[rng.randrange(len(others))]
    wide = is_wide(passage.text)
    left = room(passage.text) - len(passage.text)
    if rng.random() > NOISY_SHARE or left < 60 or wide != is_wide(other.text):
        return passage
    if other.group == passage.group or any(c.text in other.text for c in passage.claims):
        return passage  # it could say what a claim was made to miss
    text = other.text[:left]
    joined = f"{text} {passage.text}" if rng.random() < 0.5 else f"{passage.text} {text}"
    return replace(passage, text=joined)
