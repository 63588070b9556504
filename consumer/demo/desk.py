"""The simulated help desk by itself: `python -m consumer.demo.desk --settings FILE --rate 5` logs to the event topic.

For trying an installation out (`docker compose --profile demo up`): calm traffic, and now and then an incident.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import click

from consumer.client import Client
from consumer.demo.knowledge import load_documents
from consumer.demo.script import Fault
from consumer.demo.service import HelpDesk
from consumer.finite import FiniteRange
from consumer.settings_source import SettingsError, load


@click.command()
@click.option(
    "--settings", "file", type=click.Path(path_type=Path), help="Settings file (default: ./groundwatch.toml)."
)
@click.option("--rate", type=FiniteRange(0.01, 500), default=5.0, show_default=True, help="Answers a second.")
@click.option("--calm", type=FiniteRange(min=1), default=1800.0, show_default=True, help="Seconds without fault.")
@click.option("--incident", type=FiniteRange(min=0), default=600.0, show_default=True, help="Seconds with one.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(file: Path | None, rate: float, calm: float, incident: float, seed: int) -> None:
    """Log simulated answers until interrupted: calm traffic, then old knowledge, calm again, then wrong documents."""
    try:
        settings = load(file, os.environ).settings
    except SettingsError as error:
        raise click.UsageError(f"settings:\n{error}") from None
    client = Client.to(settings.kafka.bootstrap_servers, topic=settings.topics.events[0])
    desk, rng = HelpDesk(load_documents(), seed), random.Random(seed)
    began, told = time.monotonic(), Fault.NONE
    try:
        while True:
            fault = fault_at(time.monotonic() - began, calm, incident)
            if fault is not told:
                told = fault
                click.echo(f"now: {fault.value}", err=True)
            client.log(desk.handle(fault, time.time()).event)
            time.sleep(rng.expovariate(rate))
    except KeyboardInterrupt:
        click.echo(client.close(), err=True)


def fault_at(elapsed: float, calm: float, incident: float) -> Fault:
    """What is wrong `elapsed` seconds after the start.

    >>> [fault_at(t, 100, 50).value for t in (0, 120, 160, 280, 301)]
    ['none', 'old_knowledge', 'none', 'wrong_documents', 'none']
    """
    turn, inside = divmod(elapsed, calm + incident)
    if inside < calm:
        return Fault.NONE
    return Fault.OLD_KNOWLEDGE if turn % 2 == 0 else Fault.WRONG_DOCUMENTS


if __name__ == "__main__":
    main()
