"""`groundwatch cases`: which answers were flagged, and one of them in full."""

from __future__ import annotations

import itertools
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
import orjson

from consumer import logs
from consumer.case_export import exported
from consumer.case_file import CaseFile
from consumer.case_filter import CaseFilter, case_key, mentions, moment
from consumer.case_lines import CaseLines, CaseLinesError
from consumer.case_rendering import Style, rendered, rows
from consumer.case_store import CaseStore, CaseStoreError, open_store
from consumer.case_topic import CaseTopic, CaseTopicError
from consumer.cli import loaded_settings
from consumer.inert_text import inert, inert_json
from consumer.label import VERDICTS
from consumer.label import Label as PersonsLabel
from consumer.labelling import own_name
from consumer.output_places import check_outputs
from consumer.segment_choice import absent, check_dimensions, chosen_segment, segments_of, unlisted
from consumer.settings import Settings
from consumer.settings_rules import segment_conditions
from consumer.since import utc
from metrics.flags import Fault, Flag
from metrics.judge import Label

log = logging.getLogger(logs.AUDIT)

F = TypeVar("F", bound=Callable[..., Any])
PIPED_COLUMNS = 110
PROGRESS = 2000
EXPORTED_AT_ONCE = 1000
ABSENT = "it was not kept, has expired, or was forgotten"


class Source(Protocol):
    """Redis, or the topic itself."""

    def select(self, wanted: CaseFilter, limit: int | None = None) -> Iterable[CaseFile]: ...

    def find(self, reference: str) -> list[CaseFile]: ...

    def labels(self, cases: Sequence[CaseFile]) -> Mapping[str, PersonsLabel]: ...


def filters(command: F) -> F:
    """The options that choose cases."""
    options = (
        click.option("--since", help="Events from then on: 30m, 2h, 7d (ago), or an ISO time (UTC)."),
        click.option("--until", help="Events before then."),
        click.option("--flag", "flags", multiple=True, type=click.Choice([f.value for f in Flag]), help="Repeatable."),
        click.option("--fault", "faults", multiple=True, type=click.Choice([f.value for f in Fault])),
        click.option("--segment", help="app=hr-helpdesk,lang=zh"),
        click.option(
            "--verdict", "verdicts", multiple=True, type=click.Choice([v.value for v in Label]),
            help="At least one statement has it.",
        ),
        click.option("--why", multiple=True, type=click.Choice(["flagged", "audit"]), help="Why it was kept."),
        click.option(
            "--label", "said", multiple=True, type=click.Choice([*VERDICTS, "none"]), help="What a person said.",
        ),
        click.option("--text", default="", help="Stands in the question, the answer, the reference or an id."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


in_file = click.option(
    "--in", "file", type=click.Path(path_type=Path), help="A file of case files, as score-file --cases writes it."
)


def chosen(now: float, options: dict[str, Any], settings: Settings, file: Path | None) -> CaseFilter:
    """The filter of the options; a fault in one ends the command with one line."""
    try:
        since = moment(options["since"], now) if options["since"] else None
        until = moment(options["until"], now) if options["until"] else None
        if since is not None and until is not None and since >= until:
            raise ValueError(
                f"--since {options['since']} ({utc(since)}) is not before --until {options['until']} ({utc(until)}): "
                "no case can match; exchange them?"
            )
        return CaseFilter(
            since=since,
            until=until,
            flags=options["flags"],
            faults=options["faults"],
            segment=_segment(options["segment"], settings, file),
            verdicts=options["verdicts"],
            why=options["why"],
            text=options["text"],
            said=options["said"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _segment(text: str | None, settings: Settings, file: Path | None) -> Mapping[str, str]:
    """Values of dimensions; those of a file may be of other settings."""
    if not text:
        return {}
    if file is not None:
        return segment_conditions(text)
    return chosen_segment(text, settings.segments.allow)


@contextmanager
def opened(settings: Settings, file: Path | None = None) -> Iterator[Source]:
    """The file, if there is one; Redis where the settings name one for case files, else the topic. Faults become one
    line and exit code 1."""
    try:
        if file is not None:
            yield CaseLines(file)
            return
        if not settings.redis.cases_url:
            click.echo(f"redis.cases_url is not set: reading the topic {settings.topics.flagged}", err=True)
            yield CaseTopic(settings)
            return
        store = open_store(settings)
        try:
            yield store
        finally:
            store.close()
    except CaseStoreError as error:
        advice = "start it, or check redis.cases_url (GROUNDWATCH__REDIS__CASES_URL=  reads the topic instead)"
        raise click.ClickException(f"{error}; {advice}") from None
    except (CaseTopicError, CaseLinesError) as error:
        raise click.ClickException(str(error)) from None


class DefaultsToList(click.Group):
    """`groundwatch cases --since 2h` is `groundwatch cases list --since 2h`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("cases", cls=DefaultsToList)
def command() -> None:
    """Read the case files of flagged and audited answers. Without a sub-command: list.

    They come from Redis (redis.cases_url); where none is set, straight from the topic.
    """


@command.command("list")
@filters
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100_000))
@in_file
@click.option("--json", "as_json", is_flag=True, help="One JSON object a case, the whole case file.")
@click.pass_context
def list_(ctx: click.Context, /, limit: int, file: Path | None, as_json: bool, **options: Any) -> None:
    """List the newest cases that match; two lines each."""
    settings = loaded_settings(ctx).settings
    wanted = chosen(time.time(), options, settings, file)
    with opened(settings, file) as source:
        found = list(itertools.islice(source.select(wanted, limit + 1), limit + 1))
        labels = source.labels(found[:limit])
        hints = [] if found else _hints(source, wanted, settings)
    if as_json:
        for case in found[:limit]:
            click.echo(_as_json(case, labels))
    else:
        for line in rows(found[:limit], _columns(), labels):
            click.echo(line)
    if not as_json:
        hints += _about(found, limit, wanted)
    for hint in hints:
        click.echo(hint, err=True)
    _tell_bad_lines(ctx, source)


def _about(found: Sequence[CaseFile], limit: int, wanted: CaseFilter) -> list[str]:
    """What a person is told below a list; `found` has one more than `limit` where there are more."""
    if not found:
        return ["no case files yet" if wanted == CaseFilter() else "no case file matches"]
    more = [f"the {limit} newest; there are more (--limit)"] if len(found) > limit else []
    return [*more, "groundwatch cases show ID shows one in full"]


def _tell_bad_lines(ctx: click.Context, source: Source) -> None:
    """Last, so that they do not hide the cases of the other lines; they end the command with exit code 1."""
    told = _bad_lines(source)
    for line in told:
        click.echo(line, err=True)
    if told:
        ctx.exit(1)


def _bad_lines(source: Source) -> list[str]:
    return source.told() if isinstance(source, CaseLines) else []


@command.command("show")
@click.argument("reference", metavar="ID")
@in_file
@click.option("--json", "as_json", is_flag=True, help="The whole case file as JSON.")
@click.option("--full", is_flag=True, help="Whole passages, and the whole of a long answer or question.")
@click.pass_context
def show(ctx: click.Context, reference: str, file: Path | None, as_json: bool, full: bool) -> None:
    """Show one case: which statement is wrong, against which passage, and what is at fault.

    ID is an event id, a trace id, or a case key, which the list shows in place of a long id.
    """
    style = Style(_columns(), whole=full)
    with opened(loaded_settings(ctx).settings, file) as source:
        found = source.find(reference)
        labels = source.labels(found)
    if not found:
        raise click.ClickException("\n".join([f"no case file of {inert(reference)!r}: {ABSENT}", *_bad_lines(source)]))
    if as_json:
        for case in found:
            click.echo(_as_json(case, labels))
    else:
        _show(found, style, labels)
    _tell_bad_lines(ctx, source)


def _show(found: Sequence[CaseFile], style: Style, labels: Mapping[str, PersonsLabel]) -> None:
    click.echo(rendered(found[0], style, labels.get(case_key(found[0]))))
    if len(found) > 1:
        click.echo(f"\n{len(found) - 1} more with this id or trace, with another content:")
        for case in found[1:]:
            click.echo(f"  groundwatch cases show {case_key(case)}")


@command.command("export")
@filters
@in_file
@click.option("--audit", is_flag=True, help="Audited cases only: the ones that may correct the live number.")
@click.option("--limit", default=None, type=click.IntRange(1), help="The newest so many (default: all).")
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), default=Path("-"), help="File, or - (default)."
)
@click.pass_context
def export(ctx: click.Context, /, file: Path | None, audit: bool, limit: int | None, out: Path, **options: Any) -> None:
    """Write cases as events, JSON lines in the native form, which score-file and decode read. Only redacted text."""
    check_outputs({"--out": out}, {"--in": file})
    settings = loaded_settings(ctx).settings
    wanted = chosen(time.time(), options, settings, file)
    if audit:
        wanted = replace(wanted, why=("audit",))
    written = short = 0
    with opened(settings, file) as source:
        batches = _batches(source, wanted, limit)
        first = next(batches, [])  # before the file is opened: a broker that is away must not empty it
        hints = [] if first else _hints(source, wanted, settings)
        with lines_to(out) as write:
            for batch in itertools.chain([first] if first else [], batches):
                labels = source.labels(batch)
                for case in batch:
                    line = exported(case, labels.get(case_key(case)))
                    if line is None:
                        short += 1
                    else:
                        write(line)
                        written += 1
    for hint in hints:
        click.echo(hint, err=True)
    left_out = f"; {short} left out, whose text the broker had refused" if short else ""
    click.echo(f"{written} {'case' if written == 1 else 'cases'} written{left_out}", err=True)
    _tell_bad_lines(ctx, source)


def _batches(source: Source, wanted: CaseFilter, limit: int | None) -> Iterator[list[CaseFile]]:
    cases = iter(source.select(wanted, limit))
    while batch := list(itertools.islice(cases, EXPORTED_AT_ONCE)):
        yield batch


def _hints(source: Source, wanted: CaseFilter, settings: Settings) -> list[str]:
    """Why nothing matches, where the segment explains it; a dimension that a file has not ends the command."""
    if not wanted.segment or not isinstance(source, CaseLines):
        return unlisted(wanted.segment, settings.segments.allow)
    there = segments_of(source.select(CaseFilter()))
    if not there:
        return []
    try:
        check_dimensions(wanted.segment, there)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return absent(wanted.segment, there)


@command.command("forget")
@click.argument("references", metavar="[ID]...", nargs=-1)
@click.option("--text", default="", help="Every case in which this stands anywhere, passages too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def forget(ctx: click.Context, references: tuple[str, ...], text: str, yes: bool) -> None:
    """Remove cases from Redis, by id (event, trace or case key) or by text, for good.

    The topics keep their records until their retention is over; nothing can take single records out of them.
    """
    settings = loaded_settings(ctx).settings
    logs.configure(settings.logging)
    if not references and not text.strip():
        raise click.UsageError("name cases to forget, or a text with --text")
    if references and text:
        raise click.UsageError("name cases to forget or a text with --text, not both: all of either would go")
    if len(text.strip()) == 1:
        raise click.UsageError(
            f"--text {text.strip()!r}: one character stands in nearly every case; give a longer text"
        )
    if not settings.redis.cases_url:
        raise click.ClickException(
            f"redis.cases_url is not set: case files are only on the topic {settings.topics.flagged}, "
            "which keeps them until its retention is over"
        )
    with opened(settings) as source:
        assert isinstance(source, CaseStore)
        keys, unknown = _to_forget(source, references, text)
        if keys and not yes:
            click.confirm(f"remove {_files(len(keys))} from Redis for good?", abort=True)
        removed = source.forget(keys)
    how = "by a text" if text else "by id"
    log.info("audit: %s removed %s from Redis %s: %s", own_name(), _files(removed), how, ", ".join(keys) or "none")
    click.echo(
        f"{_files(removed)} removed from Redis, and kept from coming back. The topic {settings.topics.flagged} (and "
        f"the events themselves) keep what they hold until their retention is over."
    )
    if unknown:
        raise click.ClickException("no case file of " + ", ".join(repr(inert(name)) for name in unknown))


def _to_forget(store: CaseStore, references: Iterable[str], text: str) -> tuple[list[str], list[str]]:
    """Keys of the cases, and the references that name none."""
    keys: dict[str, None] = {}
    unknown = []
    for reference in references:
        found = store.find(reference)
        keys.update(dict.fromkeys(map(case_key, found)))
        if not found:
            unknown.append(reference)
    if text:
        for number, case in enumerate(store.select(CaseFilter()), 1):
            if mentions(case, text):
                keys[case_key(case)] = None
            if number % PROGRESS == 0:
                click.echo(f"{number} cases looked through", err=True)
    return list(keys), unknown


def _files(count: int) -> str:
    return f"{count} case file" if count == 1 else f"{count} case files"


@contextmanager
def lines_to(out: Path) -> Iterator[Callable[[str], object]]:
    if str(out) == "-":
        yield click.echo
        return
    try:
        with out.open("w", encoding="utf-8") as file:
            yield lambda line: file.write(f"{line}\n")
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror}") from None


def _as_json(case: CaseFile, labels: Mapping[str, PersonsLabel]) -> str:
    key = case_key(case)
    label = {"label": labels[key]} if key in labels else {}
    return inert_json(orjson.dumps({"key": key, **_plain(case), **label}).decode())


def _plain(case: CaseFile) -> dict[str, Any]:
    plain: dict[str, Any] = orjson.loads(orjson.dumps(case))
    return plain


def _columns() -> int:
    return shutil.get_terminal_size((PIPED_COLUMNS, 24)).columns if sys.stdout.isatty() else PIPED_COLUMNS
