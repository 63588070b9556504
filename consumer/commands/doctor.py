"""`groundwatch doctor`: is everything there and right?"""

from __future__ import annotations

import os
import sys

import click

from consumer.doctor import examine
from consumer.doctor_finding import Check
from consumer.finite import FiniteRange
from consumer.settings_source import SettingsError, load

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option(
    "--timeout", default=5.0, show_default=True, type=FiniteRange(min=0.5), help="Seconds to wait for the broker."
)
@click.pass_context
def command(ctx: click.Context, timeout: float) -> None:
    """Check settings, model, Redis, broker and topics: one line each, with what to do. Exit code 1 on any fail."""
    try:
        loaded = load(ctx.obj, os.environ)
    except SettingsError as error:
        for line in str(error).splitlines():
            _show(Check("settings", "fail", line))
        sys.exit(1)
    failed = False
    for check in examine(loaded, os.environ, timeout):
        _show(check)
        failed |= check.level == "fail"
    sys.exit(1 if failed else 0)


def _show(check: Check) -> None:
    level = click.style(f"{check.level:<5}", fg=_COLOURS[check.level])
    click.echo(f"{level} {check.subject}: {check.found}" + (f" -> {check.advice}" if check.advice else ""))
