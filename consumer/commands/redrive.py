"""`groundwatch redrive`: sends dead letters back to the scorer after a fix."""

from __future__ import annotations

import time

import click

from consumer.cli import loaded_settings
from consumer.deadletter_hints import hint_of, is_reason, missing_reasons
from consumer.deadletter_reading import TopicReader, Unreadable, read_letter
from consumer.finite import FiniteRange
from consumer.interrupts import Interrupts
from consumer.logs import one_line
from consumer.redrive import Chooser, sent_before
from consumer.sending import INTERRUPTED, Sender, Stalled
from consumer.settings import Settings
from consumer.since import Since


@click.command("redrive")
@click.option("--reason", "reasons", multiple=True, help="Only letters with this reason (may be given more than once).")
@click.option("--since", type=Since(), help="Only letters since then: 30m, 2h, 7d ago, or a date or time (UTC).")
@click.option("--max", "most", type=click.IntRange(min=1), help="At most so many: try one before you send all.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")
@click.option("--from-start", is_flag=True, help="Also what was sent before; scores are idempotent by event id.")
@click.option(
    "--timeout", type=FiniteRange(min=1), default=10.0, show_default=True,
    help="Give up when the broker has not answered for so many seconds.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    reasons: tuple[str, ...],
    since: float | None,
    most: int | None,
    dry_run: bool,
    from_start: bool,
    timeout: float,
) -> None:
    """Send dead letters to the redrive topic, which the scorer reads too: after a fix, and with the scorer restarted.

    A letter goes with its original key, bytes, headers and position, and at most three times. What was sent before is
    not sent again. What no fix helps (no JSON, say) is left unless --reason names it. Exit codes: 0 every chosen letter
    is acknowledged; 1 one was not, --reason names none that there is, or the broker is away; 130 Ctrl-C, after which
    the same command goes on.
    """
    settings = loaded_settings(ctx).settings
    topics = settings.topics
    chooser = Chooser(set(), reasons, since, most)
    sender: Sender | None = None
    failure, interrupted = None, False
    interrupts = Interrupts()
    with interrupts.installed():
        try:
            with TopicReader(settings, timeout, interrupts) as reader:
                if not from_start:
                    chooser.sent = sent_before(reader.records(topics.redrive))
                if not dry_run:
                    sender = Sender(settings, topics.redrive, timeout, time.monotonic, interrupts)
                    sender.check()
                for record in reader.records(topics.deadletter):
                    redriven = chooser.choose(read_letter(record))
                    if redriven is not None and sender is not None:
                        sender.put(redriven.value, redriven.key, [*redriven.headers])
                if sender is not None:
                    sender.finish()
        except KeyboardInterrupt:
            interrupted = True
        except (Unreadable, Stalled) as error:
            failure = str(error)
        if sender is not None and (interrupted or failure is not None):
            sender.abandon()
    stopped = "before it failed" if failure is not None else "before Ctrl-C" if interrupted else ""
    if chooser.letters or not stopped:
        _report(settings, chooser, sender, stopped)
    if failure is not None:
        raise click.ClickException(failure)
    if interrupted:
        click.echo("interrupted: the same command goes on where this one was", err=True)
        ctx.exit(INTERRUPTED)
    unknown = not all(is_reason(reason, chooser.seen_reasons) for reason in chooser.reasons)
    if unknown or (sender is not None and sender.tally.delivered < sender.tally.asked):
        ctx.exit(1)


def _report(settings: Settings, chooser: Chooser, sender: Sender | None, stopped: str) -> None:
    """What was done; `stopped` says that this is not all there is."""
    topics = settings.topics
    total = chooser.chosen.total()
    by_reason = ", ".join(f"{one_line(reason)} {count}" for reason, count in chooser.chosen.most_common())
    click.echo(f"{chooser.letters} dead letters read on {topics.deadletter}" + (f" {stopped}" if stopped else ""))
    if sender is None:
        click.echo(f"  would be sent to {topics.redrive}: {total}" + (f" ({by_reason})" if total else ""))
    else:
        click.echo(
            f"  sent to {topics.redrive}: {sender.tally.delivered} of {total}" + (f" ({by_reason})" if total else "")
        )
        for what, count in sender.tally.lost.most_common():
            click.echo(f"  not sent: {count} ({one_line(what)})")
    for left, count in sorted(chooser.left.items()):
        click.echo(f"  left, {left}: {count}")
    for line in () if stopped else missing_reasons(chooser.reasons, chooser.seen_reasons, topics.deadletter):
        click.echo(line, err=True)
    if sender is None:
        for reason in chooser.chosen:
            click.echo(f"before you send {one_line(reason)}: {hint_of(reason)}")
