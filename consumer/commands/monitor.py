"""`groundwatch monitor`: the monitor process."""

from __future__ import annotations

import os

import click

from consumer.process_command import Run, work


@click.command("monitor")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Turn score records into rolling gauges on /metrics (the monitor)."""
    work(ctx, _load)


def _load() -> tuple[Run, tuple[type[Exception], ...]]:
    # Its tables are small: a second thread of the algebra library would only spin, which cost most of a processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from consumer.monitoring_process import FAULTS, run

    return run, FAULTS
