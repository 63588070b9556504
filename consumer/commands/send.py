"""`groundwatch send`: puts a file of events on the topic, line by line as they are, at a steady rate."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from consumer import kafka_config
from consumer.cli import loaded_settings
from consumer.decode import Decoder
from consumer.logs import one_line
from consumer.reasons import DecodeError
from consumer.score_file import FileUnusable, Line, lines, opened
from consumer.settings import Settings
from consumer.topics import explain

SLICE_SECONDS = 0.1
"""How long one wait for the client may last: Ctrl-C and the pace are looked at in between."""
TOLD_SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""
INTERRUPTED = 130
_NO_ID = "\x00"


@click.command("send")
@click.argument("events", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Events a second (default: no limit).")
@click.option("--topic", help="Default: the first of topics.events.")
@click.option(
    "--key", type=click.Choice(["id", "none"]), default="id", show_default=True,
    help="Record key: the event's id where it has one, or none.",
)  # fmt: skip
@click.option("--id-header", help="Put the event's id into this header too (default: sampling.id_header).")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=15.0, show_default=True,
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

    Exit codes: 0 every line is acknowledged; 1 one was not, or the broker or the file cannot be used; 130 Ctrl-C.
    """
    settings = loaded_settings(ctx).settings
    sender = Sender(settings, topic or settings.topics.events[0], timeout, time.monotonic)
    identify = _Identify(settings, key == "id", settings.sampling.id_header if id_header is None else id_header)
    started = time.monotonic()
    interrupted = False
    try:
        sender.check()
        with opened(events) as (stream, consumed), _progress(events, sender.tally) as show:
            for line in lines(str(events), stream, consumed, settings.decode.max_bytes):
                _send(sender, line, identify)
                if rate is not None:
                    sender.wait_until(started + sender.tally.lines / rate)
                show(line)
            sender.finish()
    except KeyboardInterrupt:
        interrupted = True
        sender.abandon()
    except (Stalled, FileUnusable) as error:
        sender.abandon()
        _report(sender.tally, sender.topic, time.monotonic() - started)
        raise click.ClickException(str(error)) from None
    _report(sender.tally, sender.topic, time.monotonic() - started)
    if interrupted:
        ctx.exit(INTERRUPTED)
    if sender.tally.delivered < sender.tally.lines:
        ctx.exit(1)


class Stalled(Exception):
    """The broker cannot be reached or does not answer; one line that says what to do."""


@dataclass(slots=True)
class Tally:
    lines: int = 0
    delivered: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Not acknowledged, by what the client or the broker said."""


class Sender:
    """A producer that gives up when nothing is acknowledged for `timeout` seconds.

    Raises:
        Stalled: `[kafka]` cannot be used.
    """

    def __init__(self, settings: Settings, topic: str, timeout: float, now: Callable[[], float]) -> None:
        self.topic = topic
        self.tally = Tally()
        self._servers = settings.kafka.bootstrap_servers
        self._timeout = timeout
        self._now = now
        self._heard: list[KafkaError] = []
        self._waiting = 0
        self._progress = now()
        try:
            self._producer = Producer(kafka_config.producer(settings.kafka) | {"log_level": 0, "error_cb": self._hear})
        except (KafkaException, kafka_config.KafkaConfigError) as error:
            raise click.ClickException(one_line(f"[kafka]: {error.args[0]}")) from None

    def check(self) -> None:
        """Raises `Stalled` where the broker is away or there is no such topic."""
        try:
            there = self._producer.list_topics(timeout=self._timeout).topics
        except KafkaException as error:
            self._producer.poll(0)
            raise Stalled(explain(error.args[0], self._heard, self._servers)) from None
        if self.topic not in there:
            raise Stalled(
                f"there is no topic {self.topic} at {self._servers}; run: groundwatch topics create, or name another "
                "with --topic"
            )

    def put(self, value: bytes, key: bytes | None, headers: list[tuple[str, str | bytes | None]]) -> None:
        """Queue one record; waits while the queue is full."""
        if not self._waiting:
            self._progress = self._now()
        while True:
            try:
                self._producer.produce(self.topic, value, key, headers=headers, on_delivery=self._done)
            except BufferError:
                self._turn(SLICE_SECONDS)
                continue
            except KafkaException as error:
                self.tally.lost[error.args[0].str()] += 1
                return
            self._waiting += 1
            self._turn(0)
            return

    def wait_until(self, due: float) -> None:
        while (left := due - self._now()) > 0:
            self._turn(min(left, SLICE_SECONDS))

    def finish(self) -> None:
        """Wait until every record is acknowledged or refused."""
        while self._waiting:
            self._turn(SLICE_SECONDS)

    def abandon(self) -> None:
        """Give what is on its way two seconds, and up the rest."""
        with suppress(KeyboardInterrupt):
            self._producer.flush(2.0)
        self._producer.purge()
        self._producer.flush(SLICE_SECONDS)

    def _turn(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._waiting and self._now() - self._progress > self._timeout:
            unanswered = KafkaError(KafkaError._TIMED_OUT)
            raise Stalled(explain(unanswered, self._heard, self._servers))

    def _done(self, error: KafkaError | None, message: Message) -> None:
        self._waiting -= 1
        self._progress = self._now()
        if error is None:
            self.tally.delivered += 1
        else:
            self.tally.lost[error.str()] += 1

    def _hear(self, error: KafkaError) -> None:
        self._heard = [*self._heard[-20:], error]


class _Identify:
    """The event's id as the scorer will read it, so that key, header and score record agree."""

    def __init__(self, settings: Settings, key: bool, header: str) -> None:
        self._decoder = Decoder(settings.decode)
        self._key = key
        self._header = header

    def __call__(self, value: bytes) -> tuple[bytes | None, list[tuple[str, str | bytes | None]]]:
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


def _send(sender: Sender, line: Line, identify: _Identify) -> None:
    sender.tally.lines += 1
    if line.value is None:
        sender.tally.lost["longer than decode.max_bytes"] += 1
        return
    sender.put(line.value, *identify(line.value))


def _report(tally: Tally, topic: str, seconds: float) -> None:
    click.echo(
        f"{tally.delivered:,} of {tally.lines:,} events acknowledged on {topic} in {seconds:.1f} s "
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
