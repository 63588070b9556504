"""Prompts of the LLM judge: one TOML file a language, each with a version; shipped ones and a folder of own ones."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

SHIPPED = ("en", "zh")
FALLBACK = "en"
"""Language of the prompts where an event's own has none."""
PLACES: Mapping[str, frozenset[str]] = {
    "split": frozenset({"nonce", "conversation", "question", "sentences"}),
    "verdict": frozenset({"nonce", "passages", "question", "before", "claim"}),
    "doubt": frozenset({"nonce", "passages", "question", "before", "claim"}),
    "confirm": frozenset({"nonce", "passages", "question", "before", "claim"}),
    "verdicts": frozenset({"nonce", "passages", "question", "claims"}),
    "questions": frozenset({"nonce", "answer", "count", "language"}),
    "useful": frozenset({"nonce", "passages", "question"}),
    "useful_for_reference": frozenset({"nonce", "passages", "question", "reference"}),
    "again": frozenset(),
}
"""Every prompt that a set must have, and the places that its user part must name, each exactly once but for `nonce`."""

LEAST_GENERIC = 5
"""Questions that fit any answer, at least: fewer do not show how near such questions are to one another."""

_PLACE = re.compile(r"\{([a-z_]+)\}")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


class PromptError(Exception):
    """A prompt file cannot be used; what is wrong and where is in the message."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is told. `user` has `{name}` places; a line whose places are all empty is left out."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class PromptSet:
    """All prompts of one language."""

    language: str
    version: str
    """As in the file: `en/1`."""
    prompts: Mapping[str, Prompt]
    generic: tuple[str, ...]
    """Questions that fit any answer."""
    text: str
    """The file as it is written."""

    @property
    def digest(self) -> str:
        """8 hex digits of the file's text: what is edited without a new version is another prompt all the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class PromptBook:
    """Prompt sets by language; English is always there."""

    sets: Mapping[str, PromptSet]

    @property
    def version(self) -> str:
        """Versions of all sets with digests of their texts: part of every definition and of every record."""
        return " ".join(f"{s.version}@{s.digest}" for _, s in sorted(self.sets.items()))

    def of(self, language: str) -> PromptSet:
        """The set of a language, or the English one."""
        return self.sets.get(language) or self.sets[FALLBACK]


def load_book(directory: Path | None = None) -> PromptBook:
    """The shipped prompts, and those of `directory` (`de.toml`, ...) beside or instead of them.

    Raises:
        PromptError: a file cannot be read, or lacks a prompt or a place.
    """
    shipped = files("metrics.llm").joinpath("prompts")
    sets = {}
    for language in SHIPPED:
        name = f"{language}.toml"
        sets[language] = parse_prompts(shipped.joinpath(name).read_text(encoding="utf-8"), name)
    if directory is not None:
        if not directory.is_dir():
            raise PromptError(f"{directory}: no such folder of prompts")
        for file in sorted(directory.glob("*.toml")):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise PromptError(f"{file}: cannot be read ({error})") from None
            found = parse_prompts(text, str(file))
            sets[found.language] = found
    return PromptBook(sets)


def parse_prompts(text: str, name: str) -> PromptSet:
    """Read one prompt file; `name` is what errors call it.

    Raises:
        PromptError: not TOML, no version or language, or a prompt or place is missing.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{name}: not TOML ({error})") from None
    language, version = _text(data, "language", name), _text(data, "version", name)
    if not _LANGUAGE.fullmatch(language):
        raise PromptError(f"{name}: language is a code of two or three letters such as de, found {language!r}")
    prompts = {}
    for prompt, places in PLACES.items():
        section = data.get(prompt)
        if not isinstance(section, dict):
            raise PromptError(f"{name}: there is no section [{prompt}]")
        user = _text(section, "user", f"{name}, [{prompt}]")
        system = _text(section, "system", f"{name}, [{prompt}]") if places else ""
        _check_places(user, places, f"{name}, [{prompt}]")
        prompts[prompt] = Prompt(system, user)
    return PromptSet(language, version, prompts, _generic(data, name), text)


def places_of(template: str) -> list[str]:
    """Names of the places of a template, in order, as often as they stand there."""
    return _PLACE.findall(template)


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its places filled. A line all of whose places are empty is left out; braces inside of values
    are text.

    >>> filled("Question: {question}\\nClaim: {claim}", {"question": "", "claim": "It has {question}s."})
    'Claim: It has {question}s.'
    """
    lines = []
    for line in template.strip("\n").split("\n"):
        names = places_of(line)
        if not names or any(values[name] for name in names):
            lines.append(_PLACE.sub(lambda found: values[found[1]], line))
    return "\n".join(lines)


def _generic(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The lines of [generic] questions."""
    section = data.get("generic")
    if not isinstance(section, dict):
        raise PromptError(f"{name}: there is no section [generic]")
    lines = tuple(line.strip() for line in _text(section, "questions", f"{name}, [generic]").splitlines())
    questions = tuple(dict.fromkeys(line for line in lines if line))
    if len(questions) < LEAST_GENERIC:
        raise PromptError(f"{name}, [generic]: at least {LEAST_GENERIC} questions, one a line; found {len(questions)}")
    return questions


def _check_places(user: str, places: frozenset[str], where: str) -> None:
    found = places_of(user)
    for place in sorted(places):
        if place not in found:
            raise PromptError(f"{where}: the place {{{place}}} is missing")
        if place != "nonce" and found.count(place) > 1:
            raise PromptError(f"{where}: the place {{{place}}} stands there {found.count(place)} times")
    unknown = sorted(set(found) - places)
    if unknown:
        raise PromptError(f"{where}: there is no place {{{unknown[0]}}}; known: {', '.join(sorted(places)) or 'none'}")


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise PromptError(f"{where}: {key} is missing or not a text")
    return value
