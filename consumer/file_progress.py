"""How far a file is scored, on stderr, where that is a terminal; and the lines of it that hold no event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from consumer.score_file import Bad, Line

BAD_LINES_SHOWN = 100


class Shown:
    """Called with every line that is done."""

    def __init__(self, progress: Progress, size: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task("scoring", total=size, events=0)
        self._events = 0

    def __call__(self, line: Line) -> None:
        self._events += 1
        self._progress.update(self._task, completed=line.read, events=self._events)


@contextmanager
def shown_progress(file: Path) -> Iterator[Shown]:
    """A bar; `-` (stdin) has no end that is known."""
    console = Console(stderr=True)
    size = None if str(file) == "-" else max(file.stat().st_size, 1)
    columns = (
        TextColumn("scoring"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[events]} events"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield Shown(progress, size)


def tell_bad(bad: Bad, told: int, file: Path | None = None) -> None:
    """One line on stderr for the `told`-th line that holds no event; beyond a hundred they are only counted."""
    where = f"line {bad.number}" if file is None else f"{file} line {bad.number}"
    if told <= BAD_LINES_SHOWN:
        click.echo(f"{where}: {bad.detail}", err=True)
    elif told == BAD_LINES_SHOWN + 1:
        click.echo("further bad lines are only counted", err=True)
