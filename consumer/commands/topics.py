"""`groundwatch topics create|show`."""

from __future__ import annotations

import sys

import click

from consumer.cli import loaded_settings
from consumer.finite import FiniteRange
from consumer.topics import TopicsError, TopicState, create_topics, inspect_topics


@click.group("topics")
def command() -> None:
    """Create and show the topics."""


_timeout = click.option(
    "--timeout", default=5.0, show_default=True, type=FiniteRange(min=0.5), help="Seconds to wait for the broker."
)


@command.command("create")
@_timeout
@click.pass_context
def create(ctx: click.Context, timeout: float) -> None:
    """Create the topics that are missing. A topic that exists is never changed; what differs is said."""
    settings = loaded_settings(ctx).settings
    try:
        created = create_topics(settings, timeout)
        states = inspect_topics(settings, timeout)
    except TopicsError as error:
        raise click.ClickException(str(error)) from None
    for state in states:
        _show(state, "created" if state.wanted.name in created else "exists")
    _exit(states)


@command.command("show")
@_timeout
@click.pass_context
def show(ctx: click.Context, timeout: float) -> None:
    """Show the topics and what is wrong with them."""
    try:
        states = inspect_topics(loaded_settings(ctx).settings, timeout)
    except TopicsError as error:
        raise click.ClickException(str(error)) from None
    for state in states:
        _show(state, "exists" if state.partitions else "missing")
    _exit(states)


def _show(state: TopicState, what: str) -> None:
    policy = state.config.get("cleanup.policy", "?")
    # A compacted topic has a retention too, which means nothing: the newest record of a key stays for ever.
    kept = "" if policy == "compact" else f" retention.ms={state.config.get('retention.ms', '?')}"
    details = "" if not state.partitions else (
        f" partitions={state.partitions} replicas={state.replication}"
        f" cleanup.policy={policy}{kept}"
    )  # fmt: skip
    click.echo(f"{state.wanted.name}: {what}{details}")
    for finding in state.findings:
        click.echo(f"  {finding.level}: {state.wanted.name} {finding.text}")


def _exit(states: list[TopicState]) -> None:
    if any(finding.level == "fail" for state in states for finding in state.findings):
        sys.exit(1)
