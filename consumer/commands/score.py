"""`groundwatch score`: the scorer process."""

from __future__ import annotations

import click

from consumer import logs
from consumer.cli import loaded_settings
from consumer.stopping import heeded_signals


@click.command("score")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Consume events, sample and score them, and write score records (the scorer)."""
    with heeded_signals() as stopping:
        settings = loaded_settings(ctx).settings
        logs.configure(settings.logging)
        # Late: these take a second, in which signals are heeded already.
        from confluent_kafka import KafkaException

        from consumer.scoring_process import FAULTS, run

        try:
            run(settings, stopping)
        except FAULTS as error:
            raise click.ClickException(str(error)) from None
        except KafkaException as error:
            raise click.ClickException(f"kafka: {error.args[0].str()}") from None
