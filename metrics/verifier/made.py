"""Claims made of a passage: what it says, what it nearly says, and what it does not say.

An edit must not be told by how it reads: «not», a detail at the end or a rare name would else give the label away. So
part of the edits are made to the passage instead: then the edited sentence is what it says, and the original is wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from metrics.language import HAN, simplified
from metrics.verifier import sources
from metrics.verifier.edits import TRUE, Edit, added, first_that_fits, negated
from metrics.verifier.materials import Material
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED, UNSUPPORTED, Claim, Passage, Span
from metrics.verifier.told import told

MOST_CLAIMS = 8
"""Claims of one premise in one row."""
LONGEST, LONGEST_WIDE = 1000, 330
"""Characters of a premise (in scripts without spaces), about 250 tokens."""
ASKED = 3
"""Questions of a passage that claims are made of."""
TOLD_SHARE = 0.8
"""Share of the answers that are told as a statement, where they can be; the others stand behind their question."""
DENIED = 0.25
"""Share of the told answers that are denied as well: the right one wrongly, the wrong one rightly."""
USED = 5
"""Sentences of a passage that claims are made of."""

_WIDE = re.compile(f"[{HAN}]")
_LOWER_FIRST = re.compile(
    r"(?:The|An?|It|He|She|They|This|These|In|On|At|For|From|After|Before|When|His|Her|Its|Their)\b"
)


def is_wide(text: str) -> bool:
    """Whether words are not set apart."""
    return bool(_WIDE.search(text))


def room(text: str) -> int:
    """Characters that a premise in the script of `text` may have."""
    return LONGEST_WIDE if is_wide(text) else LONGEST


def made_of(material: Material, edits: Sequence[Edit], rng: random.Random) -> Passage | None:
    """Claims of a passage, all kinds mixed; None where it has too few sentences."""
    wide = is_wide(material.text)
    anchors = [answer for _, answer, _ in material.asked] + [c.text[:12] for c in material.said if c.label == SUPPORTED]
    text = simplified(material.text) if wide and rng.random() < 0.3 else material.text
    kept = window(text, anchors, room(text), rng)
    if len(kept) < 2:
        return None
    joint = "" if wide else " "
    whole = joint.join(kept)
    others = _strangers(material, whole, wide)
    usable = [i for i, s in enumerate(kept) if _fits(s, wide)]
    claims: list[Claim] = []
    changed: dict[int, str] = {}
    for i in rng.sample(usable, min(USED, len(usable))):
        protected = any(a in kept[i] for a in anchors)
        found, instead = _claims_of(i, kept, whole, edits, others, protected or len(changed) > len(kept) // 2, rng)
        claims += found
        if instead is not None:
            changed[i] = instead
    premise = joint.join(s for i, sentence in enumerate(kept) if (s := changed.get(i, sentence)))
    # What a later change to the passage made doubtful goes: a claim that quotes a sentence that is no more.
    gone = [kept[i].rstrip(" .。!！;；").lower() for i in changed]
    claims = [
        c for c in claims if c.label != SUPPORTED or not any(g in c.text.lower() for g in gone) or c.text in premise
    ]
    question = material.asked[0][0] if material.asked else ""
    if question:
        claims = [_behind(question, c) if rng.random() < 0.15 else c for c in claims]
    claims += _answers(material.asked, premise, edits, rng)
    if len(whole) >= len(material.text) * 0.9 and not changed:
        claims += material.said
    else:
        claims += [replace(c, spans=None) for c in material.said if c.label != SUPPORTED or c.text in premise]
    if material.beside and others and rng.random() < 0.6:
        claims.append(Claim(rng.choice(others), NOT_FOUND))
    rng.shuffle(claims)
    return Passage(premise, tuple(claims[:MOST_CLAIMS]), material.source, material.group) if claims else None


def _claims_of(
    i: int,
    kept: Sequence[str],
    whole: str,
    edits: Sequence[Edit],
    others: Sequence[str],
    fixed: bool,
    rng: random.Random,
) -> tuple[list[Claim], str | None]:
    """Claims of sentence i, and what stands in its place in the passage: None as it is, "" nothing.

    `fixed`: the passage must stay as it is here.
    """
    sentence, kind = kept[i], rng.random()
    wide = is_wide(sentence)
    written = simplified(sentence) if wide and rng.random() < 0.4 else sentence
    if kind < 0.27:
        true = first_that_fits(TRUE, sentence, whole, rng) if rng.random() < 0.6 else None
        return [Claim(true.text if true else written, SUPPORTED, ())], None
    if kind < 0.52:
        return edited(written, whole, edits, CONTRADICTED, rng), None
    if kind < 0.66 and not fixed:
        # The passage is edited: what it said is wrong now, and the edited sentence is right.
        found = first_that_fits(edits, sentence, whole, rng)
        if found is None:
            return [], None
        claims = [Claim(sentence, CONTRADICTED, _differing(sentence, found.text)), Claim(found.text, SUPPORTED, ())]
        return claims if rng.random() < 0.6 else [rng.choice(claims)], found.text
    if kind < 0.72:
        return edited(sentence, whole, (added,), NOT_FOUND, rng), None
    if kind < 0.77 and not fixed:
        found = added(sentence, whole, rng)
        return ([Claim(found.text, SUPPORTED, ())], found.text) if found else ([], None)
    if kind < 0.9:
        near = [s for k, s in enumerate(kept) if k != i and len(s) < (80 if wide else 180)]
        if others and rng.random() < 0.5:
            return [_joined(sentence, rng.choice(others), NOT_FOUND, wide)], None
        return ([_joined(sentence, rng.choice(near), SUPPORTED, wide)], None) if near else ([], None)
    if fixed:
        return [Claim(written, SUPPORTED, ())], None
    return [Claim(sentence, NOT_FOUND, ((0, len(sentence)),))], ""


def _joined(one: str, other: str, label: int, wide: bool) -> Claim:
    """Two sentences as one; where the second is a stranger's, it is the unsupported part."""
    body = one.rstrip(" .。!！;；")
    tail = other[0].lower() + other[1:] if _LOWER_FIRST.match(other) else other
    text = body + ("，" if wide else ", and ") + tail
    return Claim(text, label, () if label == SUPPORTED else ((len(body), len(text)),))


def _strangers(material: Material, whole: str, wide: bool) -> list[str]:
    """Sentences of the passages beside this one that it does not hold."""
    found = [
        s for text in material.beside[:3] for s in sources.sentences(text, 12 if wide else 40, 80 if wide else 180)
    ]
    return [s for s in found if s not in whole]


def _fits(sentence: str, wide: bool) -> bool:
    return 10 <= len(sentence) <= 110 if wide else 35 <= len(sentence) <= 260


def _differing(one: str, other: str) -> tuple[Span, ...]:
    """The stretch of `one` that is not as in `other`; at least one character."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    low = min(start, len(one) - 1)
    return ((low, max(len(one) - end, low + 1)),)


def window(text: str, anchors: Sequence[str], limit: int, rng: random.Random) -> list[str]:
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


def _answers(
    asked: Sequence[tuple[str, str, tuple[str, ...]]], premise: str, edits: Sequence[Edit], rng: random.Random
) -> list[Claim]:
    """Questions with short answers, joined or told as one statement: the right one, one that the passage does not give
    to this question, and the right one edited."""
    claims = []
    for question, answer, wrong in asked[:ASKED]:
        if answer not in premise:
            if len(answer) < 30:
                claims.append(Claim(_put(question, answer, rng)[0], NOT_FOUND))
            continue
        right, _ = _put(question, answer, rng)
        claims.append(Claim(right, SUPPORTED, ()))
        others = [w for w in wrong if w not in answer and answer not in w]
        inside = [w for w in others if w in premise] or others
        if inside:
            new = min(rng.sample(inside, min(4, len(inside))), key=lambda w: abs(len(w) - len(answer)))
            text, at = _put(question, new, rng)
            claims.append(Claim(text, UNSUPPORTED, ((at, at + len(new)),)))
            if rng.random() < DENIED and (denied := _denied(text, question, premise, rng)) is not None:
                claims.append(Claim(denied, SUPPORTED, ()))
        if rng.random() < DENIED and (denied := _denied(right, question, premise, rng)) is not None:
            claims.append(Claim(denied, CONTRADICTED))
        elif rng.random() < 0.3 and not right.startswith(question):
            claims += edited(right, premise, edits, CONTRADICTED, rng)
    return claims


def _denied(statement: str, question: str, premise: str, rng: random.Random) -> str | None:
    """A question told as a statement, denied; None where it could not be told, or has nothing to deny."""
    if statement.startswith(question):
        return None
    found = first_that_fits((negated,), statement, premise, rng)
    return None if found is None else found.text


def _put(question: str, answer: str, rng: random.Random) -> tuple[str, int]:
    """A question with its answer, and where the answer begins: mostly as a statement where it can be told so."""
    statement = told(question, answer) if rng.random() < TOLD_SHARE else None
    if statement is None or answer not in statement:
        return f"{question} {answer}", len(question) + 1
    return statement, statement.rindex(answer)


def edited(sentence: str, passage: str, edits: Sequence[Edit], label: int, rng: random.Random) -> list[Claim]:
    """The sentence with one edit, sometimes after one that leaves it true; nothing where no edit fits."""
    if rng.random() < 0.25:
        same = first_that_fits(TRUE, sentence, passage, rng)
        sentence = same.text if same else sentence
    changed = first_that_fits(edits, sentence, passage, rng)
    return [Claim(changed.text, label, changed.changed)] if changed else []


def _behind(question: str, claim: Claim) -> Claim:
    by = len(question) + 1
    spans = None if claim.spans is None else tuple((a + by, b + by) for a, b in claim.spans)
    return replace(claim, text=f"{question} {claim.text}", spans=spans)
