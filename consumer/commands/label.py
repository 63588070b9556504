"""`groundwatch label`: what a person says of an answer, good or bad; and labels out of and into files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click

from consumer.case_file import CaseFile
from consumer.case_filter import case_key
from consumer.case_store import CaseStore, CaseStoreError, open_store
from consumer.case_topic import CaseTopic, CaseTopicError
from consumer.cli import loaded_settings
from consumer.commands.cases import ABSENT, lines_to
from consumer.deadletter_reading import TopicReader, Unreadable
from consumer.finite import FiniteRange
from consumer.inert_text import inert
from consumer.interrupts import Interrupts
from consumer.label import VERDICTS, LabelChange, checked_by, label_of
from consumer.label_lines import TAKEN_AWAY, BadLine, CaseUnclear, label_line, read_lines
from consumer.label_topic import LabelsNotWritten, LabelWriter, read_labels
from consumer.labelling import own_name, put_labels
from consumer.settings import Settings
from consumer.since import Since
from consumer.terminal_text import shortened

WRITTEN_AT_ONCE = 500
SHOWN_BAD_LINES = 20

timeout_option = click.option(
    "--timeout", type=FiniteRange(min=1), default=10.0, show_default=True,
    help="Give up when the broker has not answered for so many seconds.",
)  # fmt: skip
by_option = click.option("--by", help="Who says it (default: your login).")


class DefaultsToSet(click.Group):
    """`groundwatch label ID good` is `groundwatch label set ID good`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["set", *args]
        return super().parse_args(ctx, args)


@click.group("label", cls=DefaultsToSet)
def command() -> None:
    """Label answers good or bad: groundwatch label ID good|bad|none. Labels of audited cases correct the live number.

    Good: you would have let the answer go out as it is; what it says stands in the passages, and it answers the
    question. Everything else is bad.
    """


@command.command("set")
@click.argument("reference", metavar="ID")
@click.argument("verdict", type=click.Choice([*VERDICTS, TAKEN_AWAY]))
@by_option
@click.option("--note", default="", help="Why; one line. It is kept as you write it.")
@timeout_option
@click.pass_context
def set_(ctx: click.Context, reference: str, verdict: str, by: str | None, note: str, timeout: float) -> None:
    """Label one case; `none` takes its label away.

    ID is an event id, a trace id or a case key, as `groundwatch cases` shows them. A new label replaces the old one.
    Exit codes: 0 the broker has acknowledged it; 1 no such case, or the broker did not; 2 a wrong option.
    """
    settings = loaded_settings(ctx).settings
    now = time.time()
    said = next((each for each in VERDICTS if each == verdict), None)
    with _cases(settings) as cases:
        try:
            case = cases.one(reference)
            label = (
                None if said is None else label_of(case, said, by=own_name() if by is None else by, note=note, now=now)
            )
            change = LabelChange(case.record.id, label)
        except CaseUnclear as error:
            if said is not None or cases.found_any(reference):
                raise click.ClickException(str(error)) from None
            change = LabelChange(reference, None)  # the case is gone; its label need not stay
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        _write(settings, cases.store, [change], timeout, now)
    if change.label is None:
        click.echo(f"{shortened(change.id, 64)}: no label")
        return
    if "audit" not in change.label.why:
        effect = "not an audited case, so it corrects no score"
    elif change.label.run != "live":
        effect = f"of run {shortened(change.label.run, 40)}, so it corrects no live score"
    else:
        effect = "it counts towards the corrected score"
    click.echo(f"{shortened(change.id, 64)}: {verdict}, by {change.label.by}; {effect}")


@command.command("export")
@click.option("--since", type=Since(), help="Labels given since then: 30m, 2h, 7d ago, or a date or time (UTC).")
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), default=Path("-"), help="File, or - (default)."
)
@timeout_option
@click.pass_context
def export(ctx: click.Context, since: float | None, out: Path, timeout: float) -> None:
    """Write every label that stands on the topic, one JSON object a line; `label import` reads them."""
    settings = loaded_settings(ctx).settings
    try:
        with TopicReader(settings, timeout, Interrupts()) as reader:
            labels = read_labels(reader, settings)
    except Unreadable as error:
        raise click.ClickException(str(error)) from None
    chosen = [label for label in labels.values() if since is None or label.labelled_time >= since]
    with lines_to(out) as write:
        for label in sorted(chosen, key=lambda label: label.labelled_time):
            write(label_line(label))
    click.echo(f"{len(chosen)} {'label' if len(chosen) == 1 else 'labels'} written", err=True)


@command.command("import")
@click.argument("file", type=click.File("rb"))
@by_option
@click.option("--dry-run", is_flag=True, help="Check every line, and write nothing.")
@timeout_option
@click.pass_context
def import_(ctx: click.Context, file: BinaryIO, by: str | None, dry_run: bool, timeout: float) -> None:
    """Read labels from FILE (- is stdin), one JSON object a line: what `label export` wrote, or
    {"id": "...", "verdict": "good", "note": "..."} for a case that is still there.

    Lines that hold no label are told by number and reason, and the others are written all the same. Importing a file
    twice changes nothing. Exit codes: 0 every line is written; 1 one is not.
    """
    settings = loaded_settings(ctx).settings
    now = time.time()
    bad: list[BadLine] = []
    good = 0
    try:
        name = checked_by(own_name() if by is None else by)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with _cases(settings) as cases:
        batch: list[LabelChange] = []
        for found in read_lines(file, cases.one, by=name, now=now):
            if isinstance(found, BadLine):
                bad.append(found)
                continue
            good += 1
            batch.append(found)
            if len(batch) >= WRITTEN_AT_ONCE:
                _write(settings, cases.store, [] if dry_run else batch, timeout, now)
                batch = []
        _write(settings, cases.store, [] if dry_run else batch, timeout, now)
    for line in bad[:SHOWN_BAD_LINES]:
        click.echo(f"line {line.number}: {shortened(line.reason, 200)}", err=True)
    if len(bad) > SHOWN_BAD_LINES:
        click.echo(f"and {len(bad) - SHOWN_BAD_LINES} more lines that hold no label", err=True)
    click.echo(f"{good} {'label' if good == 1 else 'labels'} {'would be ' if dry_run else ''}written", err=True)
    if bad:
        ctx.exit(1)


class _Cases:
    """Where cases are looked up: Redis, or the topic where there is none or it is away."""

    def __init__(self, settings: Settings, store: CaseStore | None) -> None:
        self.store = store
        self._topic = CaseTopic(settings)
        self._away = store is None

    def one(self, reference: str) -> CaseFile:
        """The case that `reference` names.

        Raises:
            CaseUnclear: there is none, or there are several.
        """
        found = self._find(reference)
        if not found:
            raise CaseUnclear(f"no case file of {inert(reference)!r}: {ABSENT}")
        if len(found) > 1:
            keys = ", ".join(map(case_key, found[:5]))
            raise CaseUnclear(f"{len(found)} cases are called {inert(reference)!r}; name one by its key: {keys}")
        return found[0]

    def found_any(self, reference: str) -> bool:
        return bool(self._find(reference))

    def _find(self, reference: str) -> list[CaseFile]:
        if self.store is not None and not self._away:
            try:
                return self.store.find(reference)
            except CaseStoreError as error:
                click.echo(f"{error}; looking on the topic", err=True)
                self._away = True
        try:
            return self._topic.find(reference)
        except CaseTopicError as error:
            raise click.ClickException(str(error)) from None


@contextmanager
def _cases(settings: Settings) -> Iterator[_Cases]:
    try:
        store = open_store(settings) if settings.redis.cases_url else None
    except CaseStoreError as error:
        raise click.ClickException(str(error)) from None
    try:
        yield _Cases(settings, store)
    finally:
        if store is not None:
            with suppress(Exception):
                store.close()


def _write(settings: Settings, store: CaseStore | None, changes: list[LabelChange], timeout: float, now: float) -> None:
    if not changes:
        return
    try:
        with LabelWriter(settings, timeout) as writer:
            done = put_labels(writer, store, changes, now=now)
    except LabelsNotWritten as error:
        raise click.ClickException(str(error)) from None
    if done.not_indexed is not None:
        click.echo(f"written, and shown beside the cases once Redis answers again: {done.not_indexed}", err=True)
