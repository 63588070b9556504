"""`groundwatch score`: the scorer process."""

from __future__ import annotations

import click

from consumer.process_command import Run, work


@click.command("score")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Consume events, sample and score them, and write score records (the scorer)."""
    work(ctx, _load)


def _load() -> tuple[Run, tuple[type[Exception], ...]]:
    from consumer.scoring_process import FAULTS, run

    return run, FAULTS
