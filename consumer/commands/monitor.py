"""`groundwatch monitor`: the monitor process."""

from __future__ import annotations

import click

from consumer.process_command import Run, work


@click.command("monitor")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Turn score records into rolling gauges on /metrics (the monitor)."""
    work(ctx, _load)


def _load() -> tuple[Run, tuple[type[Exception], ...]]:
    from consumer.monitoring_process import FAULTS, run

    return run, FAULTS
