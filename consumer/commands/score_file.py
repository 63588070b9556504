"""`groundwatch score-file`: the stream's scoring on a file, with gates for automated runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

import click
import orjson
from rich.console import Console

from consumer import logs
from consumer.case_file import encode_case
from consumer.cli import loaded_settings
from consumer.comparison import Comparison, ComparisonError, OldScores, comparable, read_old
from consumer.decode import Decoder, MappingError
from consumer.file_progress import shown_progress, tell_bad
from consumer.finite import FiniteRange
from consumer.judged_metrics import beyond, scored
from consumer.output_places import check_outputs
from consumer.record import encode_record
from consumer.record_building import versions_in_force
from consumer.redaction import Redactor
from consumer.results import Results
from consumer.score_file import (
    Bad,
    Done,
    FileUnusable,
    Ignored,
    Scoring,
    lines,
    opened,
    results,
    written,
)
from consumer.score_gates import (
    Gates,
    below_floor,
    comparison_json,
    comparison_view,
    fallen,
    read_floors,
    too_many_flagged,
)
from consumer.score_summary import Summary, as_json, judged_lines, length_table, score_table
from consumer.segments import Segmenter
from consumer.settings import Settings
from consumer.settings_rules import check_metric_names
from consumer.thresholds import ThresholdTable, thresholds_in_force
from metrics.baseline import BaselineError
from metrics.evaluation import Evaluator
from metrics.ranges import range_of

GATE_EXIT = 3
JUDGES = ("lexical", "local", "llm", "none")
WIDTH = 160
"""Of the tables where there is no terminal to ask."""

_INPUT = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
_OUTPUT = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command("score-file")
@click.argument("events", type=_INPUT)
@click.option("--out", type=_OUTPUT, required=True, help="Score records, one a line (.gz compresses; - is stdout).")
@click.option("--metrics", help="Comma-separated; default: scoring.metrics of the settings.")
@click.option("--judge", type=click.Choice(JUDGES), help="Default: judge.kind of the settings.")
@click.option("--cases", type=_OUTPUT, help="Case files of the flagged answers, one a line (.gz compresses).")
@click.option("--fail-under", "floors", multiple=True, metavar="METRIC=VALUE", help="Exit 3 if the mean is below.")
@click.option("--baseline", type=_INPUT, help="Thresholds from this baseline (default: baseline.file).")
@click.option("--max-flagged", type=FiniteRange(0, 1), help="Exit 3 if a larger share of answers is flagged.")
@click.option("--against", type=_INPUT, help="Scores of an earlier run, joined by id: exit 3 if a mean fell.")
@click.option("--summary", "summary_file", type=_OUTPUT, help="The summary as JSON too.")
@click.option("--run", default="file", show_default=True, help="`run` of the records; only `live` reaches gauges.")
@click.pass_context
def command(
    ctx: click.Context,
    events: Path,
    out: Path,
    metrics: str | None,
    judge: str | None,
    cases: Path | None,
    floors: tuple[str, ...],
    baseline: Path | None,
    max_flagged: float | None,
    against: Path | None,
    summary_file: Path | None,
    run: str,
) -> None:
    """Score EVENTS (JSON lines in any accepted form, gzip or not; - is stdin) the way the stream is scored.

    Order is kept. Lines that hold no event are reported by number and reason. Exit codes: 0 scored; 1 nothing could
    be scored, or a file or the model cannot be used; 2 bad arguments; 3 a gate says no, with a line that says why.
    """
    settings = _for_file(loaded_settings(ctx).settings, metrics, judge, baseline, run)
    logs.configure(settings.logging)
    _check_places(events, out, cases, summary_file, against)
    limits = _floors(floors, settings)
    decoder = _decoder(settings)
    old = None if against is None else _old_scores(against)
    evaluator = _evaluator(settings)
    thresholds = _thresholds(settings, evaluator)
    try:
        compared = comparable(old, evaluator.definitions) if old else ()
    except ComparisonError as error:
        raise click.UsageError(f"--against {against}: {error}") from None
    summary = Summary(evaluator.definitions, evaluator.bounds)
    comparison = Comparison(old, compared) if old else None
    how = Scoring(
        decoder,
        Redactor(settings.redaction),
        Segmenter(settings.segments),
        evaluator,
        Results(settings, thresholds, evaluator.definitions, versions_in_force(evaluator), time.time),
        "stdin" if str(events) == "-" else events.name,
        _event_time(events),
        settings.judge.concurrency,
    )
    try:
        with suppress(_NoEvent):
            _score(events, out, cases, how, settings.decode.max_bytes, summary, comparison)
    except FileUnusable as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None
    gates = Gates(limits, max_flagged)
    reasons = _report(out, cases, settings, summary, gates, old, comparison, summary_file)
    if not summary.scored:
        raise click.ClickException(f"{events}: no event could be scored")
    if reasons:
        for reason in reasons:
            click.echo(f"gate: {reason}", err=True)
        ctx.exit(GATE_EXIT)


def _for_file(settings: Settings, metrics: str | None, judge: str | None, baseline: Path | None, run: str) -> Settings:
    """The settings of the stream, with what the options say. No case is kept for an audit: a file is not sampled."""
    names = settings.scoring.metrics
    if metrics is not None:
        names = tuple(dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip()))
    if not names:
        raise click.UsageError("--metrics: give at least one name")
    kind = settings.judge.kind if judge is None else judge
    if kind == "llm" and not (settings.judge.url and settings.judge.model):
        raise click.UsageError("--judge llm needs judge.url (http://HOST:PORT/v1) and judge.model in the settings")
    return settings.model_copy(
        update={
            "scoring": settings.scoring.model_copy(update={"metrics": names}),
            "judge": settings.judge.model_copy(update={"kind": kind}),
            "baseline": settings.baseline.model_copy(update={"file": baseline or settings.baseline.file}),
            "scorer": settings.scorer.model_copy(update={"run": run}),
            "cases": settings.cases.model_copy(update={"audit_share": 0.0}),
        }
    )


def _check_places(events: Path, out: Path, cases: Path | None, summary: Path | None, against: Path | None) -> None:
    check_outputs({"--cases": cases, "--out": out, "--summary": summary}, {"EVENTS": events, "--against": against})
    for name, path in (("--out", out), ("--cases", cases), ("--summary", summary)):
        if path is not None and str(path) != "-" and not path.parent.is_dir():
            raise click.UsageError(f"{name} {path}: there is no folder {path.parent}")
    if str(events) == "-" and against is not None and str(against) == "-":
        raise click.UsageError("EVENTS and --against cannot both be stdin")


def _floors(given: Iterable[str], settings: Settings) -> dict[str, float]:
    """The options as a mapping; a fault in one must not cost the loading of a model, nor must a metric that there is
    not."""
    names = settings.scoring.metrics
    try:
        check_metric_names(names)
        fault = beyond(names, settings.judge)
        if fault:
            raise ValueError(fault)
    except ValueError as error:
        raise click.UsageError(f"--metrics: {error}") from None
    try:
        all_scored = scored(names, settings.judge)
        return read_floors(given, {name: (range_of(name).low, range_of(name).high) for name in all_scored})
    except ValueError as error:
        raise click.UsageError(f"--fail-under {error}") from None


def _old_scores(against: Path) -> OldScores:
    try:
        with opened(against) as (stream, consumed):
            return read_old(
                (line.number, line.value or b"?") for line in lines(str(against), stream, consumed, 10_000_000)
            )
    except (ComparisonError, FileUnusable) as error:
        raise click.UsageError(f"--against {against}: {error}") from None


def _decoder(settings: Settings) -> Decoder:
    try:
        return Decoder(settings.decode)
    except MappingError as error:
        raise click.UsageError(str(error)) from None


def _evaluator(settings: Settings) -> Evaluator:
    # Late: torch and the model take seconds, which a mistake in the arguments must not cost.
    from consumer.embedders import build_evaluator
    from metrics.model_files import ModelError

    try:
        return build_evaluator(settings, None)
    except ValueError as error:
        raise click.UsageError(f"--metrics: {error}") from None
    except ModelError as error:
        raise click.ClickException(str(error)) from None


def _thresholds(settings: Settings, evaluator: Evaluator) -> ThresholdTable:
    """Those of the stream; what they are is told on stderr where a baseline has a say in it."""
    try:
        table = thresholds_in_force(settings, evaluator.definitions, evaluator.thresholds)
    except BaselineError as error:
        raise click.UsageError(str(error)) from None
    if settings.baseline.file is not None:
        for note in table.notes:
            click.echo(note, err=True)
    return table


def _event_time(events: Path) -> float:
    """For events without a time of their own: when the file was written, the same in every run."""
    return time.time() if str(events) == "-" else events.stat().st_mtime


class _NoEvent(Exception):
    """There is nothing to write, so no file is left."""


def _score(
    events: Path,
    out: Path,
    cases: Path | None,
    how: Scoring,
    max_bytes: int,
    summary: Summary,
    comparison: Comparison | None,
) -> None:
    with ExitStack() as open_:
        stream, consumed = open_.enter_context(opened(events))
        sink = open_.enter_context(written(out, sys.stdout.buffer))
        case_sink = None if cases is None else open_.enter_context(written(cases, sys.stdout.buffer))
        show = open_.enter_context(shown_progress(events))
        for line, result in results(lines(str(events), stream, consumed, max_bytes), how):
            match result:
                case Done(record, case, answer_length, form, repairs):
                    sink.write(encode_record(record) + b"\n")
                    if case is not None and case_sink is not None:
                        case_sink.write(encode_case(case) + b"\n")
                    summary.add(record, answer_length)
                    summary.forms[form] += 1
                    summary.repairs.update(repairs)
                    if comparison is not None:
                        comparison.add(record)
                case Bad(reason=reason):
                    summary.bad[reason] += 1
                    tell_bad(result, summary.bad.total())
                case Ignored():
                    summary.ignored += 1
            show(line)
        if not summary.events:
            raise _NoEvent


def _report(
    out: Path,
    cases: Path | None,
    settings: Settings,
    summary: Summary,
    gates: Gates,
    old: OldScores | None,
    comparison: Comparison | None,
    summary_file: Path | None,
) -> list[str]:
    """Prints the summary; returns the reasons of the gates that say no."""
    console = Console(stderr="-" in (str(out), str(cases)), highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    metrics = summary.metrics()
    minimum = settings.monitor.coverage_minimum
    console.print(score_table(metrics, minimum), length_table(metrics, minimum))
    bad = ", ".join(f"{reason} {count}" for reason, count in summary.bad.most_common())
    console.print(
        f"{summary.events} events: {summary.scored} scored, {summary.unscored} unscored; {summary.ignored} ignored; "
        f"{summary.bad.total()} bad lines" + (f" ({bad})" if bad else "")
    )
    for text in judged_lines(summary):
        console.print(text)
    told = as_json(summary)
    reasons = below_floor(gates.floors, metrics) + too_many_flagged(gates.max_flagged, summary.flags)
    if old is not None and comparison is not None:
        joined, differences = comparison.joined(), comparison.differences()
        console.print(comparison_view(old, joined, differences))
        told["comparison"] = comparison_json(joined, differences)
        reasons += fallen(joined, differences)
    if summary_file is not None:
        told["gates"] = reasons
        with written(summary_file, sys.stdout.buffer) as sink:
            sink.write(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
    return reasons
