"""`groundwatch deadletters`: what could not be read, by reason, and what to do about it."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from consumer.cli import loaded_settings
from consumer.deadletter_hints import hint_of, is_reason, missing_reasons
from consumer.deadletter_reading import Letter, Repeats, TopicReader, Unreadable, read_letter
from consumer.finite import FiniteRange
from consumer.inert_text import inert_json
from consumer.interrupts import Interrupts
from consumer.logs import one_line
from consumer.since import Since

WIDTH = 160
"""Of the table where there is no terminal to ask."""
SHOWN_DETAIL = 120


@click.command("deadletters")
@click.option("--reason", "reasons", multiple=True, help="Only letters with this reason (may be given more than once).")
@click.option("--since", type=Since(), help="Only letters since then: 30m, 2h, 7d ago, or a date or time (UTC).")
@click.option(
    "--show", type=click.IntRange(min=0), default=0, metavar="N", help="Print the newest N, original bytes too."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option(
    "--timeout", type=FiniteRange(min=1), default=5.0, show_default=True,
    help="Give up when the broker has not answered for so many seconds.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context, reasons: tuple[str, ...], since: float | None, show: int, as_json: bool, timeout: float
) -> None:
    """List dead letters by reason, with an example of each and what to do about it. Changes nothing.

    The original bytes are not redacted: they are shown only with --show. A letter that a killed scorer wrote twice is
    listed once. Exit codes: 0 also when nothing matches; 1 --reason names none that there is, or the broker is away.
    """
    settings = loaded_settings(ctx).settings
    groups: dict[str, Group] = {}
    there: Counter[str] = Counter()
    shown: deque[Letter] = deque(maxlen=show)
    repeats = Repeats()
    interrupts = Interrupts()
    try:
        with interrupts.installed(), TopicReader(settings, timeout, interrupts) as reader:
            for record in reader.records(settings.topics.deadletter, since):
                letter = read_letter(record)
                if since is not None and letter.time < since:
                    continue
                repeat = repeats.again(letter)
                there[letter.reason] += not repeat
                if reasons and letter.reason not in reasons:
                    continue
                group = groups.setdefault(letter.reason, Group(letter, letter.time, letter.time))
                if repeat:
                    group.repeats += 1
                else:
                    group.add(letter)
                    shown.append(letter)
    except Unreadable as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        raise click.Abort from None
    topic = settings.topics.deadletter
    ordered = sorted(groups.items(), key=lambda item: (-item[1].count, item[0]))
    if as_json:
        click.echo(_json(topic, ordered, shown))
    elif ordered:
        _print(topic, ordered)
        for letter in shown:
            click.echo(_whole(letter))
    elif not reasons:
        click.echo(f"no dead letters{'' if since is None else ' that match'} on {topic}")
    for line in missing_reasons(reasons, there, topic if since is None else f"{topic} since then"):
        click.echo(line, err=True)
    if not all(is_reason(reason, there) for reason in reasons):
        ctx.exit(1)


@dataclass(slots=True)
class Group:
    """The letters of one reason: `example` is the newest; times in seconds since the epoch."""

    example: Letter
    first: float
    last: float
    count: int = 0
    without_payload: int = 0
    repeats: int = 0
    """Not in `count`."""

    def add(self, letter: Letter) -> None:
        self.count += 1
        self.without_payload += letter.value is None
        self.first = min(self.first, letter.time)
        if letter.time >= self.last:
            self.last, self.example = letter.time, letter


def _print(topic: str, groups: list[tuple[str, Group]]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    table = Table(title=f"dead letters on {topic}", title_justify="left")
    table.add_column("reason", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, no_wrap=True)
    table.add_column("example", overflow="fold")
    table.add_column("its detail", overflow="fold")
    for reason, group in groups:
        example = group.example
        table.add_row(
            Text(one_line(reason) or "(none)"), str(group.count), _time(group.first), _time(group.last),
            Text(one_line(str(example.original or example.at))), Text(one_line(example.detail[:SHOWN_DETAIL])),
        )  # fmt: skip
    console.print(table)
    for reason, group in groups:
        click.echo(f"{one_line(reason) or '(none)'}: {hint_of(reason)}")
        if group.repeats:
            what = "repeat is" if group.repeats == 1 else "repeats are"
            click.echo(f"  {group.repeats} {what} not counted: a scorer that is killed may write a letter twice")
        if group.without_payload:
            click.echo(f"  {group.without_payload} of them without payload: headers only, cannot be redriven")


def _whole(letter: Letter) -> str:
    """One letter with its original bytes; nothing in it reaches the terminal as a control character."""
    attempts = f", sent back {letter.attempts} times" if letter.attempts else ""
    lines = [
        "",
        f"{one_line(letter.reason) or '(none)'} at {one_line(str(letter.original or letter.at))}, "
        f"{_time(letter.time)}{attempts}",
        f"  detail   {one_line(letter.detail)}",
        f"  key      {'(none)' if letter.key is None else _readable(letter.key)}",
    ]
    lines += [f"  header   {one_line(name)}: {_readable(content or b'')}" for name, content in letter.headers]
    lines.append("  value    " + ("(headers only)" if letter.value is None else _readable(letter.value)))
    return "\n".join(lines)


def _readable(raw: bytes) -> str:
    """Bytes as text on one line; what is no text, or no character to print, is written as an escape."""
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _json(topic: str, groups: list[tuple[str, Group]], shown: deque[Letter]) -> str:
    told: dict[str, Any] = {
        "topic": topic,
        "letters": sum(group.count for _, group in groups),
        "reasons": {
            reason: {
                "count": group.count,
                "repeats": group.repeats,
                "without_payload": group.without_payload,
                "first": _time(group.first),
                "last": _time(group.last),
                "example": {
                    "position": str(group.example.original or group.example.at),
                    "detail": group.example.detail,
                    "attempts": group.example.attempts,
                },
                "hint": hint_of(reason),
            }
            for reason, group in groups
        },
    }
    if shown:
        told["shown"] = [
            {
                "reason": letter.reason,
                "detail": letter.detail,
                "position": str(letter.original or letter.at),
                "time": _time(letter.time),
                "attempts": letter.attempts,
                "key": None if letter.key is None else _text(letter.key),
                "headers": [[name, None if content is None else _text(content)] for name, content in letter.headers],
                "value": None if letter.value is None else _text(letter.value),
            }
            for letter in shown
        ]
    return inert_json(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
