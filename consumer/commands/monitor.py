"""`groundwatch monitor`: the monitor process."""

from __future__ import annotations

import click

from consumer import logs
from consumer.cli import loaded_settings
from consumer.stopping import heeded_signals


@click.command("monitor")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Turn score records into rolling gauges on /metrics (the monitor)."""
    with heeded_signals() as stopping:
        settings = loaded_settings(ctx).settings
        logs.configure(settings.logging)
        # Late: these take a second, in which signals are heeded already.
        from confluent_kafka import KafkaException

        from consumer.monitoring_process import FAULTS, run

        try:
            run(settings, stopping)
        except FAULTS as error:
            raise click.ClickException(str(error)) from None
        except KafkaException as error:
            raise click.ClickException(f"kafka: {error.args[0].str()}") from None
