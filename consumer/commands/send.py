"""`groundwatch send`: puts a file of events on the topic, line by line as they are, at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from consumer.cli import loaded_settings
from consumer.decode import Decoder
from consumer.decoding.reasons import DecodeError
from consumer.finite import FiniteRange
from consumer.interrupts import Interrupts
from consumer.logs import one_line
from consumer.score_file import FileUnusable, Line, lines, opened
from consumer.sending import INTERRUPTED, Sender, Stalled, Tally
from consumer.settings import Settings

TOLD_SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""
_NO_ID = "\x00"
_Addressed = tuple[bytes | None, list[tuple[str, str | bytes | None]]]
"""Key and headers of a record."""


@click.command("send")
@click.argument("events", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--rate", type=FiniteRange(min=0, min_open=True), help="Events a second (default: no limit).")
@click.option("--topic", help="Default: the first of topics.events.")
@click.option(
    "--key", type=click.Choice(["id", "none"]), default="id", show_default=True,
    help="Record key: the event's id where it has one, or none.",
)  # fmt: skip
@click.option("--id-header", help="Put the event's id into this header too (default: sampling.id_header).")
@click.option(
    "--timeout", type=FiniteRange(min=1), default=15.0, show_default=True,
    help="Give up when the broker has acknowledged nothing for so many seconds.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    events: Path,
    rate: float | None,
    topic: str | None,
    key: str,
    id_header: str | None,
    timeout: float,
) -> None:
    """Put EVENTS (one event a line, gzip or not; - is stdin) on the topic, each line as it is.

    Exit codes: 0 every line is acknowledged; 1 one was not, the file is empty, or it or the broker
    cannot be used; 130 Ctrl-C.
    """
    settings = loaded_settings(ctx).settings
    interrupts = Interrupts()
    try:
        sender = Sender(settings, topic or settings.topics.events[0], timeout, time.monotonic, interrupts)
    except Stalled as error:
        raise click.ClickException(str(error)) from None
    identify = _Identify(settings, key == "id", settings.sampling.id_header if id_header is None else id_header)
    started = time.monotonic()
    interrupted = False
    with interrupts.installed():
        try:
            sender.check()
            with opened(events) as (stream, consumed), _progress(events, sender.tally) as show:
                for line in lines(str(events), stream, consumed, settings.decode.max_bytes):
                    _send(sender, line, identify)
                    if rate is not None:
                        sender.wait_until(started + sender.tally.asked / rate)
                    show(line)
                sender.finish()
        except KeyboardInterrupt:
            interrupted = True
            sender.abandon()
        except (Stalled, FileUnusable) as error:
            sender.abandon()
            if sender.tally.asked:
                _report(sender.tally, sender.topic, time.monotonic() - started)
            raise click.ClickException(str(error)) from None
    if not sender.tally.asked and not interrupted:
        raise click.ClickException(f"{events}: it holds no line, so nothing was sent")
    _report(sender.tally, sender.topic, time.monotonic() - started)
    if interrupted:
        ctx.exit(INTERRUPTED)
    if sender.tally.delivered < sender.tally.asked:
        ctx.exit(1)


class _Identify:
    """The event's id as the scorer will read it, so that key, header and score record agree."""

    def __init__(self, settings: Settings, key: bool, header: str) -> None:
        self._decoder = Decoder(settings.decode)
        self._key = key
        self._header = header

    def __call__(self, value: bytes) -> _Addressed:
        if not self._key and not self._header:
            return None, []
        try:
            found = self._decoder.decode(value, fallback_id=_NO_ID, broker_time=0.0).event.id
        except DecodeError:
            return None, []  # the scorer will dead-letter it, and that may be what is being tried
        if found == _NO_ID:
            return None, []
        event_id = found.encode("utf-8", "replace")
        return event_id if self._key else None, [(self._header, event_id)] if self._header else []


def _send(sender: Sender, line: Line, identify: Callable[[bytes], _Addressed]) -> None:
    if line.value is None:
        sender.tally.asked += 1
        sender.tally.lost["longer than decode.max_bytes"] += 1
        return
    sender.put(line.value, *identify(line.value))


def _report(tally: Tally, topic: str, seconds: float) -> None:
    click.echo(
        f"{tally.delivered:,} of {tally.asked:,} events acknowledged on {topic} in {seconds:.1f} s "
        f"({tally.delivered / max(seconds, 0.001):,.0f}/s)",
        err=True,
    )
    for reason, count in tally.lost.most_common(5):
        click.echo(f"not sent: {count:,} ({one_line(reason)})", err=True)


@contextmanager
def _progress(events: Path, tally: Tally) -> Iterator[Callable[[Line], None]]:
    """A bar on stderr where that is a terminal, else a line every ten seconds."""
    console = Console(stderr=True)
    size = None if str(events) == "-" else max(events.stat().st_size, 1)
    told = time.monotonic()
    columns = (
        TextColumn("sending"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[sent]:,} acknowledged"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("sending", total=size, sent=0)

        def show(line: Line) -> None:
            nonlocal told
            progress.update(task, completed=line.read, sent=tally.delivered)
            if not console.is_terminal and time.monotonic() - told >= TOLD_SECONDS:
                told = time.monotonic()
                click.echo(f"{tally.delivered:,} events acknowledged", err=True)

        yield show
