"""Where a command writes: never over what it reads, nor two things into one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import click


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Both by the name that the person knows them by, `--out` or EVENTS; `-` is stdin and stdout, which differ.

    Raises:
        click.UsageError: an output is an input or another output.
    """
    written = [(name, path) for name, path in outputs.items() if path is not None]
    for name, path in written:
        for other, read in inputs.items():
            if read is not None and str(path) != "-" and _same(path, read):
                raise click.UsageError(f"{name} {path} would overwrite {other}; name another file")
    for (name, path), (other, second) in combinations(written, 2):
        if _same(path, second):
            raise click.UsageError(f"{name} {path} and {other} are the same file; name another")


def _same(one: Path, other: Path) -> bool:
    if one.absolute() == other.absolute():
        return True
    return one.exists() and other.exists() and os.path.samefile(one, other)
