"""Edits that make a true sentence false, and edits that leave it true, in English and Chinese.

Each takes a sentence, the passage that it stands in and a random source, and gives the edited sentence with the spans
that are now unsupported; or None where there is nothing to edit. They only ever teach: what measures has edits of its
own.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from metrics.language import HAN, simplified

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edited:
    """`changed`: character spans of `text` that differ from what the passage says."""

    text: str
    changed: tuple[Span, ...] = ()


Edit = Callable[[str, str, random.Random], Edited | None]

_WORDS: Mapping[str, Any] = tomllib.loads(files("metrics.verifier").joinpath("edits.toml").read_text("utf-8"))


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_NUMBER = re.compile(rf"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)|(?<=[{HAN}])\d+(?:\.\d+)?|\d+(?:\.\d+)?(?=[{HAN}])")
_KINDS = tuple(
    (re.compile(rf"\b(?:{_any(words)})\b" if words[0].isascii() else _any(words)), words)
    for words in (line.split() for line in _WORDS["kinds"].values())
)
_CHINESE_COUNT = re.compile("[二两三四五六七八九十](?=[个名位人年月日天次件家条座种层部届章岁项所支队])")


def _opposites(lines: str) -> dict[str, str]:
    pairs = [pair.split("/") for pair in lines.split()]
    return {a: b for one, other in pairs for a, b in ((one, other), (other, one))}


_OPPOSITE = {language: _opposites(lines) for language, lines in _WORDS["opposites"].items()}
_ENGLISH_OPPOSITE = re.compile(rf"\b(?:{_any(_OPPOSITE['english'])})\b")
_CHINESE_OPPOSITE = re.compile(_any(_OPPOSITE["chinese"]))
_VERBS = "is|are|was|were|can|will|would|could|should|does|did|do|has|have|had|must|may"
_AUXILIARY = re.compile(rf"\b({_VERBS})\b(?! not|n't)")
_NEGATED = re.compile(rf"\b({_VERBS})( not|n't)\b|\b(never|cannot) ")
_VERB = re.compile(r"(?<=[a-z] )([a-z]{3,})(ed|s) (?=(?:the|a|an|in|to|his|her|its|their|on|with|by|for)\b)")
_CHINESE_VERB = re.compile("|".join(_WORDS["negation"]["chinese_verbs"]))
_CHINESE_NOT: Mapping[str, str] = _WORDS["negation"]["chinese"]
_CHINESE_NEGATED = re.compile("|".join(_WORDS["negation"]["chinese_negated"]))
_CHINESE_PLAIN: Mapping[str, str] = _WORDS["negation"]["chinese_plain"]
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?: (?:of |the |de |von |van )?[A-Z][\w'’-]+){0,3}")
_SENTENCE_STARTERS = re.compile(
    r"(?:The|An?|In|On|At|It|He|She|They|We|You|This|That|These|Those|However|But|And|For|From|After|Before|When|While|"
    r"His|Her|Their|Its|If|As|By|To|Some|Many|Most|There|Although|During|Since|One|Also|With|Both|Each|According)"
)
_CHINESE_NAME = re.compile(
    rf"《[^》]{{2,12}}》|(?:(?<![{HAN}])|(?<=[在于是和与及到从由为往赴返经自的]))"
    rf"(?:[{HAN}]{{2,4}}(?:省|市|县|区|镇|大学|公司|医院|学院|集团|银行|法院|委员会|共和国)|[{HAN}]{{2,3}}(?=[说认指]|表示))"
)


def other_number(sentence: str, passage: str, rng: random.Random) -> Edited | None:
    """Another number: near it, of other digits, or one that stands elsewhere in the passage."""
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    m = rng.choice(found)
    others = [n for n in _NUMBER.findall(passage) if n not in sentence and abs(len(n) - len(m[0])) <= 1]
    if others and rng.random() < 0.4:
        return _put(sentence, m.span(), rng.choice(others))
    if m[0].isdigit() and rng.random() < 0.5:
        value = int(m[0])
        step = rng.choice((1, 2, 3, 5, 10, max(1, value // 10), max(1, value // 2)))
        new = str(value + step if rng.random() < 0.5 or value <= step else value - step)
    else:
        digits = [i for i, c in enumerate(m[0]) if c.isdigit()]
        at = rng.choice(digits)
        new = m[0][:at] + str((int(m[0][at]) + rng.randint(1, 9)) % 10) + m[0][at + 1 :]
        if new[0] == "0" and len(new) > 1 and new[1].isdigit():
            new = "1" + new[1:]
    return _put(sentence, m.span(), new) if new != m[0] else None


def other_of_kind(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    """Another word of a closed list: number word, month, weekday, direction, colour, nationality, kin, unit of time."""
    places = [(m, words) for pattern, words in _KINDS for m in pattern.finditer(sentence)]
    if not places:
        return None
    m, words = rng.choice(places)
    return _put(sentence, m.span(), rng.choice([w for w in words if w != m[0]]))


def other_count(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    found = list(_CHINESE_COUNT.finditer(sentence))
    if not found:
        return None
    m = rng.choice(found)
    return _put(sentence, m.span(), rng.choice([c for c in "三四五六七八九十" if c != m[0]]))


def opposite(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    found = [*_ENGLISH_OPPOSITE.finditer(sentence), *_CHINESE_OPPOSITE.finditer(sentence)]
    if not found:
        return None
    m = rng.choice(found)
    return _put(sentence, m.span(), _OPPOSITE["english" if m[0].isascii() else "chinese"][m[0]])


def negated(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    """A negation put in or taken out."""
    out = _NEGATED.search(sentence) or _CHINESE_NEGATED.search(sentence)
    if out:
        if not out[0].isascii():
            return _put(sentence, out.span(), _CHINESE_PLAIN.get(out[0], out[0][1:]))
        plain = out[1] or {"never": "always ", "cannot": "can "}[out[3]]
        return _put(sentence, out.span(), "can" if out[0] == "can't" else plain)
    into = list(_AUXILIARY.finditer(sentence))
    if into:
        m = rng.choice(into)
        return _put(sentence, m.span(), f"{m[0]} {rng.choice(('not', 'not', 'never'))}")
    wide = list(_CHINESE_VERB.finditer(sentence))
    if wide:
        m = rng.choice(wide)
        return _put(sentence, m.span(), _CHINESE_NOT.get(m[0], "不" + m[0]))
    verb = _VERB.search(sentence)
    if verb and not verb[1].endswith("s"):
        new = f"did not {verb[1]}" if verb[2] == "ed" else f"does not {verb[1]}"
        return _put(sentence, (verb.start(), verb.end() - 1), new)
    return None


def names_of(text: str) -> list[str]:
    """What looks like a name: runs of capitals that begin no sentence; Chinese titles, places and bodies."""
    found = [m[0] for m in _NAME.finditer(text) if not _SENTENCE_STARTERS.fullmatch(m[0].split()[0])]
    return list(dict.fromkeys([*found, *_CHINESE_NAME.findall(text)]))


def other_name(sentence: str, passage: str, rng: random.Random) -> Edited | None:
    """A name of the sentence becomes another one that the passage holds."""
    here = names_of(sentence)
    others = [n for n in names_of(passage) if n not in sentence and not any(n in h or h in n for h in here)]
    return _renamed(sentence, here, others, rng)


def renaming(pool: Sequence[str]) -> Edit:
    """An edit that takes the new name from a pool, whatever the passage holds."""

    def foreign_name(sentence: str, passage: str, rng: random.Random) -> Edited | None:
        here = names_of(sentence)
        others = [n for n in rng.sample(pool, min(8, len(pool))) if n not in passage]
        return _renamed(sentence, here, others, rng)

    return foreign_name


def _renamed(sentence: str, here: Sequence[str], others: Sequence[str], rng: random.Random) -> Edited | None:
    if not here or not others:
        return None
    old = rng.choice(here)
    fit = [n for n in others if n.isascii() == old.isascii() and n.isdigit() == old.isdigit()]
    if not fit:
        return None
    # The likest in length, so that length gives nothing away.
    new = min(rng.sample(fit, min(4, len(fit))), key=lambda n: abs(len(n) - len(old)))
    at = sentence.find(old)
    return _put(sentence, (at, at + len(old)), new)


def swapped_names(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    here = [n for n in names_of(sentence) if sentence.count(n) == 1]
    if len(here) < 2:
        return None
    one, other = sorted(rng.sample(here, 2), key=sentence.find)
    a, b = sentence.find(one), sentence.find(other)
    between = sentence[a + len(one) : b]
    if b < a + len(one) or re.fullmatch(r"\s*(?:,|and|or|&|和|与|、|及)\s*", between):
        return None
    text = sentence[:a] + other + between + one + sentence[b + len(other) :]
    second = a + len(other) + len(between)
    return Edited(text, ((a, a + len(other)), (second, second + len(one))))


def added(sentence: str, passage: str, rng: random.Random) -> Edited | None:
    """A plausible detail that the passage does not give is put at the end."""
    wide = bool(re.search(f"[{HAN}]", sentence))
    tail = rng.choice(_WORDS["tails"]["chinese" if wide else "english"]).format(
        n=rng.randint(2, 60), year=rng.randint(1950, 2024)
    )
    if tail.strip(" ,，") in passage:
        return None
    body = sentence.rstrip(" .。!！")
    text = f"{body}{tail}{'。' if wide else '.'}"
    return Edited(text, ((len(body), len(body) + len(tail)),))


FALSE: tuple[Edit, ...] = (
    other_number,
    other_number,
    other_of_kind,
    other_count,
    opposite,
    negated,
    other_name,
    swapped_names,
)
"""Edits after which the passage contradicts the sentence."""


_DIGITS = {str(i + 2): word for i, word in enumerate(_WORDS["kinds"]["numbers"].split()[:11])}


def led(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    wide = bool(re.search(f"[{HAN}]", sentence))
    return Edited(rng.choice(_WORDS["leads"]["chinese" if wide else "english"]) + sentence)


def shortened(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    """Brackets left out, or what follows «, which»."""
    text = re.sub(r"\s*[(（][^)）]{1,80}[)）]", "", sentence)
    text = re.sub(r", (?:which|who|where|although|while) [^.;]+(?=[.;]|$)", "", text)
    return Edited(text) if text != sentence and len(text) > 20 else None


def rewritten_number(sentence: str, _passage: str, rng: random.Random) -> Edited | None:
    """The same number in another form: 1,000 and 1000, 30% and 30 percent, 7 and seven."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", sentence)
    if text == sentence:
        text = re.sub(r"\b(\d{2,3})(\d{3})(?= [a-z])", r"\1,\2", sentence)
    if text == sentence:
        text = (
            re.sub(r"(?<=\d)%", " percent", sentence)
            if "percent" not in sentence
            else sentence.replace(" percent", "%")
        )
    if text == sentence:
        text = re.sub(r"(?<=[a-z] )(\d{1,2})(?= [a-z])", lambda m: _DIGITS.get(m[0], m[0]), sentence)
    return Edited(text) if text != sentence else None


def other_script(sentence: str, _passage: str, _rng: random.Random) -> Edited | None:
    text = simplified(sentence)
    return Edited(text) if text != sentence else None


def lowered(sentence: str, _passage: str, _rng: random.Random) -> Edited | None:
    return Edited(sentence.lower()) if not sentence.islower() and sentence.isascii() else None


TRUE: tuple[Edit, ...] = (led, shortened, shortened, rewritten_number, other_script, lowered)
"""Edits that leave a sentence as true as it was."""


def first_that_fits(edits: Sequence[Edit], sentence: str, passage: str, rng: random.Random) -> Edited | None:
    """The result of the first edit, in random order, that has something to do; never the sentence itself."""
    for edit in rng.sample(edits, len(edits)):
        found = edit(sentence, passage, rng)
        if found is not None and found.text != sentence and found.text not in passage:
            return found
    return None


def _put(sentence: str, span: Span, new: str) -> Edited:
    text = sentence[: span[0]] + new + sentence[span[1] :]
    return Edited(text, ((span[0], span[0] + len(new)),))
