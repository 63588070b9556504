"""Prompts of the LLM judge: files with a version, one a language, and a folder for adapted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class PromptError(Exception):
    """A prompt file cannot be used; what is wrong and where is in the message."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Two templates with `{name}` places."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class PromptSet:
    """All prompts of one language."""

    language: str
    version: str
    prompts: Mapping[str, Prompt]
    text: str
    """The file as it is written."""


@dataclass(frozen=True, slots=True)
class PromptBook:
    """Prompt sets by language; English is always there."""

    sets: Mapping[str, PromptSet]

    @property
    def version(self) -> str:
        """Versions of all sets with the digests of their texts: part of every definition and of every record."""
        return " ".join(self.sets[language].version for language in sorted(self.sets))


def load_book(directory: Path | None = None) -> PromptBook:
    """The shipped prompts, and those of `directory` beside or instead of them.

    Raises:
        PromptError: a file cannot be read, or lacks a prompt or a place.
    """
    return PromptBook({})
