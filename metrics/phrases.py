"""The phrase lists of phrases.toml as compiled patterns."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from metrics.language import simplified

_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def _lists() -> Mapping[str, Mapping[str, list[str]]]:
    lists: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
        files("metrics").joinpath("phrases.toml").read_text(encoding="utf-8")
    )
    return lists


def pattern(section: str, *names: str) -> re.Pattern[str]:
    """One pattern that matches any phrase of the named lists of a section, without regard to case.

    It is to be matched against `simplified` text, so that both Chinese scripts are covered.

    Raises:
        KeyError: no such section, list or part.
    """
    return re.compile(simplified(_any_of(section, *names)), re.IGNORECASE)


def _any_of(section: str, *names: str) -> str:
    phrases = [phrase for name in names for phrase in _lists()[section][name]]

    def part(found: re.Match[str]) -> str:
        return _any_of(section if found[1] in _lists()[section] else "parts", found[1])

    return "(?:" + "|".join(_PART.sub(part, phrase) for phrase in phrases) + ")"
