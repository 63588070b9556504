"""`groundwatch settings`: what is in force, and where each value came from."""

from __future__ import annotations

import click

from consumer.cli import loaded_settings
from consumer.settings_source import in_force


@click.command("settings")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print every setting in force and where its value came from. Secrets are never printed."""
    rows = list(in_force(loaded_settings(ctx)))
    width = max(len(key) for key, _, _ in rows)
    for key, value, origin in rows:
        click.echo(f"{key:<{width}} = {value}" + ("" if origin == "default" else f"    # {origin}"))
