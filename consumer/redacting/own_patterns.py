"""A user's own redaction patterns: compiled and tried at start, run under a time limit.

`regex` and not `re`: a search that backtracks for minutes can be stopped there, and one text must not stop a worker.
"""

from __future__ import annotations

from typing import Final

import regex

_PROBE_SECONDS: Final = 0.25
_PROBE_CHARACTERS: Final = 4096
_PROBES: Final = tuple(
    unit * (_PROBE_CHARACTERS // len(unit)) + end
    for unit in ("0", "a", "A", " ", "-", "1 ", "a ", "0-", "a.", "a@", "aA0", "中", "word ", "x=1;", "a,", "0.", "\n")
    for end in ("", "!")
)


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """The pattern, after a trial on texts that make a careless one explode.

    Raises:
        ValueError: it does not compile, matches the empty text, or takes too long.
    """
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if compiled.search("") is not None:
        raise ValueError("it matches the empty text, so it would match everywhere")
    for probe in _PROBES:
        try:
            for _ in compiled.finditer(probe, timeout=_PROBE_SECONDS):
                pass
        except TimeoutError:
            raise ValueError(
                f"it took more than {_PROBE_SECONDS} s on {len(probe):,} characters ({probe[:8]!r} repeated): a "
                "repetition in or beside another one tries every way to share them out; bound it, as in a{1,64}"
            ) from None
    return compiled
