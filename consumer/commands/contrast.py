"""`groundwatch contrast`: which labels explain how a metric moved between two spans of time."""

from __future__ import annotations

import time
import uuid

import click
import orjson
from rich.console import Console

from consumer.cli import loaded_settings
from consumer.contrast_view import as_json, lines, table
from consumer.contrasting import NothingToContrast, Question, find
from consumer.inert_text import inert_json
from consumer.score_topic import Range, ScoreTopic, ScoreTopicError
from consumer.segment_choice import chosen_segment, unlisted
from consumer.since import moment, seconds_of, utc

WIDTH = 190
"""Of the table where there is no terminal to ask."""


@click.command("contrast")
@click.option(
    "--before", "first", required=True, metavar="T1", help="Beginning of the first span: 6h (ago), an ISO time, or T/T."
)
@click.option("--after", "second", required=True, metavar="T2", help="Beginning of the second span, likewise.")
@click.option(
    "--for", "lasting", metavar="SPAN", help="How long both spans last: 30m, 2h (default: up to T2, and now)."
)
@click.option("--metric", default="faithfulness", show_default=True)
@click.option("--segment", help="Only these answers: app=hr-helpdesk,lang=zh")
@click.option("--definition", help="Only scores of this definition (default: what most of the later scores have).")
@click.option("--json", "as_text", flag_value=False, default=True, help="Everything as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    first: str,
    second: str,
    lasting: str | None,
    metric: str,
    segment: str | None,
    definition: str | None,
    as_text: bool,
) -> None:
    """Say which labels (model, kb_version, app, lang, ...) explain how METRIC moved from one span of time to another.

    The spans are T1 up to T2 and T2 up to now, or as long as --for says, or from one time to another: 6h/4h. Reads the
    score log; nothing is written. Exit codes: 0 done, 1 nothing to compare or no broker, 2 bad arguments.
    """
    settings = loaded_settings(ctx).settings
    try:
        before, after = _spans(first, second, lasting, time.time())
        wanted = chosen_segment(segment, settings.segments.allow) if segment else {}
    except (ValueError, OverflowError) as error:
        raise click.UsageError(str(error)) from None
    topic = ScoreTopic(settings, f"groundwatch-contrast-{uuid.uuid4().hex[:8]}")
    question = Question(metric, before, after, wanted, definition)
    try:
        finding = find(topic.read(before, after), question)
    except NothingToContrast as error:
        told = unlisted(wanted, settings.segments.allow)
        raise click.ClickException("\n".join([str(error), *told])) from None
    except ScoreTopicError as error:
        raise click.ClickException(str(error)) from None
    if not as_text:
        click.echo(inert_json(orjson.dumps(as_json(finding)).decode()))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    for line in lines(finding):
        console.print(line, markup=False, soft_wrap=True)
    if finding.contrast.parts:
        console.print(table(finding.contrast))


def _spans(first: str, second: str, lasting: str | None, now: float) -> tuple[Range, Range]:
    """The two spans.

    Raises:
        ValueError: a time that cannot be read, an empty span, or two that overlap.
    """
    spans: list[tuple[float, float | None]] = []
    for option, text in (("--before", first), ("--after", second)):
        start, slash, stop = text.partition("/")
        if slash and lasting:
            raise ValueError(f"{option} {text}: says when it ends, so leave --for out")
        spans.append((_moment(option, start, now), _moment(option, stop, now) if slash else None))
    (begin, end), (later, latest) = spans
    if end is None:
        end = begin + seconds_of(lasting) if lasting else later
    if latest is None:
        latest = later + seconds_of(lasting) if lasting else now
    for option, one, other in (("--before", begin, end), ("--after", later, latest)):
        if one >= other:
            raise ValueError(f"{option}: the span ends before it begins: from {utc(one)} to {utc(other)}")
    if end > later:
        raise ValueError(
            f"the span before must end before the one after begins (a shorter --for?): it ends at {utc(end)}, the one "
            f"after begins at {utc(later)}"
        )
    return Range(begin, end), Range(later, latest)


def _moment(option: str, text: str, now: float) -> float:
    try:
        return moment(text, now)
    except ValueError:
        raise ValueError(f"{option} {text!r} is no time; write 30m, 2h, 7d or 2026-11-29T10:00Z") from None
