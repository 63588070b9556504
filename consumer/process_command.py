"""What the commands of the two long-lived processes share: signals heeded from the start, faults as one line."""

from __future__ import annotations

from collections.abc import Callable

import click

from consumer import logs
from consumer.cli import loaded_settings
from consumer.settings import Settings
from consumer.stopping import Stopping, heeded_signals, leave

Run = Callable[[Settings, Stopping], None]


def work(ctx: click.Context, load: Callable[[], tuple[Run, tuple[type[Exception], ...]]]) -> None:
    """Run a process until a signal, then end it. `load()` imports what it needs, which takes a second in which signals
    are heeded already: its run function, and the exceptions that carry a message for a person.

    Raises:
        ClickException: the process could not start or go on; the message says what to do.
    """
    with heeded_signals() as stopping:
        settings = loaded_settings(ctx).settings
        logs.configure(settings.logging)
        from confluent_kafka import KafkaException

        run, faults = load()
        try:
            run(settings, stopping)
        except faults as error:
            raise click.ClickException(str(error)) from None
        except KafkaException as error:
            raise click.ClickException(f"kafka: {error.args[0].str()}") from None
        leave()
