"""`groundwatch correlate`: how far each metric agrees with what people said about the same answers."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import orjson
from rich.console import Console

from consumer import logs
from consumer.cli import loaded_settings
from consumer.correlation import Row, agreements, diagrams, good_from, strongest
from consumer.correlation_view import agreement_tables, as_json, diagram_lines, disagreement_lines
from consumer.decode import Decoder, MappingError
from consumer.file_progress import shown_progress, tell_bad
from consumer.inert_text import inert
from consumer.output_places import check_outputs
from consumer.ratings import RATINGS, RatingError, RatingReader, row_of
from consumer.record_building import versions_in_force
from consumer.redaction import Redactor
from consumer.results import Results
from consumer.score_file import Bad, Done, FileUnusable, Scoring, lines, opened, results, written
from consumer.segments import Segmenter
from consumer.settings import Settings
from consumer.thresholds import ThresholdTable, thresholds_in_force
from metrics.baseline import BaselineError
from metrics.evaluation import Evaluator
from metrics.event import Event
from metrics.ranges import SIMILARITY_SUFFIX

WIDTH = 190
"""Of the tables where there is no terminal to ask."""
PICTURES = (".svg", ".png", ".pdf")
_INPUT = click.Path(path_type=Path, exists=True, dir_okay=False)
_OUTPUT = click.Path(path_type=Path, dir_okay=False)


@click.command("correlate")
@click.argument("labelled", type=_INPUT)
@click.option(
    "--rating", metavar="FIELD", help=f"Where the rating is (JMESPath); default: {', '.join(RATINGS[:4])}, ..."
)
@click.option("--group", metavar="FIELD", help="What answers have in common (question, document); default: group.")
@click.option("--good-from", "cut", type=float, help="A rating from which an answer is good (default: half-way).")
@click.option("--baseline", type=_INPUT, help="Thresholds from this baseline (default: baseline.file).")
@click.option("--out", type=_OUTPUT, help="All figures as JSON (no text).")
@click.option("--plot", type=_OUTPUT, help="The reliability diagrams, .svg, .png or .pdf.")
@click.option(
    "--disagreements", "most", type=click.IntRange(min=0), default=5, show_default=True, help="Shown a metric."
)
@click.option("--resamples", type=click.IntRange(min=100), default=1000, show_default=True, help="Of the bootstrap.")
@click.pass_context
def command(
    ctx: click.Context,
    labelled: Path,
    rating: str | None,
    group: str | None,
    cut: float | None,
    baseline: Path | None,
    out: Path | None,
    plot: Path | None,
    most: int,
    resamples: int,
) -> None:
    """Score LABELLED (events with a human rating, JSON lines) and say how far every metric agrees with the ratings.

    A rating is a number (higher is better), true or false, good or bad, or a list of them. Exit codes: 0 done; 1
    nothing could be compared, or a file or the model cannot be used; 2 bad arguments.
    """
    settings = _settings(loaded_settings(ctx).settings, baseline)
    logs.configure(settings.logging)
    _check_picture(plot)
    check_outputs({"--out": out, "--plot": plot}, {"LABELLED": labelled, "--baseline": baseline})
    try:
        decoder, reader = Decoder(settings.decode), RatingReader(rating, group)
    except (MappingError, RatingError) as error:
        raise click.UsageError(str(error)) from None
    evaluator = _evaluator(settings)
    try:
        thresholds = thresholds_in_force(settings, evaluator.definitions, evaluator.thresholds)
    except BaselineError as error:
        raise click.UsageError(str(error)) from None
    try:
        rows, unrated = _rows(labelled, decoder, reader, settings, thresholds, evaluator)
    except (FileUnusable, RatingError) as error:
        raise click.ClickException(str(error)) from None
    if not rows:
        raise click.ClickException(
            f"{labelled}: no row has both a score and a rating ({reader.field or 'none found'}){_fields(reader)}"
        )
    if group is not None and not reader.grouped:
        click.echo(f"no rated row has the group {group!r}, so each is one of its own{_fields(reader)}", err=True)
    metrics = [metric for metric in evaluator.definitions if any(metric in row.scores for row in rows)]
    keys = tuple(settings.segments.allow)
    cut = good_from(np.array([row.rating for row in rows])) if cut is None else cut
    found = list(agreements(rows, metrics, keys, cut, resamples))
    bins, apart = diagrams(rows, metrics, cut), list(strongest(rows, metrics, most))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(*agreement_tables(found, keys))
    console.print(
        f"{labelled.name}: {len(rows)} rated answers in {len({row.group for row in rows})} groups, rating from "
        f"{reader.field!r}; good is a rating of {cut:g} or more (--good-from); {unrated} rows without a rating",
        markup=False,
    )
    for line in (*diagram_lines(bins), *disagreement_lines(apart)):
        console.print(line, markup=False, soft_wrap=True)
    try:
        if out is not None:
            with written(out, sys.stdout.buffer) as sink:
                told = as_json(found, bins, apart, keys, cut) | {"rating": reader.field}
                sink.write(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
        if plot is not None:
            logging.getLogger("matplotlib").setLevel(logging.WARNING)
            from consumer.correlation_plot import draw

            draw(bins, [m for m in metrics if not m.endswith(SIMILARITY_SUFFIX)], plot)
    except FileUnusable as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{plot}: cannot be written: {error.strerror}") from None


def _settings(settings: Settings, baseline: Path | None) -> Settings:
    return settings.model_copy(
        update={
            "scoring": settings.scoring.model_copy(update={"sketch": False}),
            "cases": settings.cases.model_copy(update={"audit_share": 0.0}),
            "scorer": settings.scorer.model_copy(update={"run": "correlate"}),
            "baseline": settings.baseline.model_copy(update={"file": baseline or settings.baseline.file}),
        }
    )


def _fields(reader: RatingReader) -> str:
    return f"; fields of the rows: {', '.join(map(inert, reader.fields))}" if reader.fields else ""


def _check_picture(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix not in PICTURES:
        raise click.UsageError(f"--plot {plot}: the name must end in {', '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs matplotlib: pip install 'groundwatch[plots]'")


def _evaluator(settings: Settings) -> Evaluator:
    # Late: torch and the model take seconds, which a mistake in the arguments must not cost.
    from consumer.embedders import build_evaluator
    from metrics.model_files import ModelError

    try:
        return build_evaluator(settings, None)
    except ValueError as error:
        raise click.UsageError(f"scoring.metrics: {error}") from None
    except ModelError as error:
        raise click.ClickException(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Remembering:
    """Keeps the redacted texts of events until their scores are there, in order."""

    redactor: Redactor
    texts: deque[tuple[str, str]] = field(default_factory=deque)

    def redact(self, event: Event) -> Event:
        redacted = self.redactor.redact(event)
        self.texts.append((redacted.question or "", redacted.answer or ""))
        return redacted


def _rows(
    file: Path,
    decoder: Decoder,
    reader: RatingReader,
    settings: Settings,
    thresholds: ThresholdTable,
    evaluator: Evaluator,
) -> tuple[list[Row], int]:
    """Rated rows with at least one score, and how many events had no rating."""
    remembering = _Remembering(Redactor(settings.redaction))
    versions = versions_in_force(evaluator)
    how = Scoring(
        decoder,
        remembering,
        Segmenter(settings.segments),
        evaluator,
        Results(settings, thresholds, evaluator.definitions, versions, time.time),
        file.name,
        file.stat().st_mtime,
        settings.judge.concurrency,
    )
    keys = tuple(settings.segments.allow)
    rows: list[Row] = []
    unrated = told = 0
    with opened(file) as (stream, consumed), shown_progress(file) as show:
        for line, result in results(lines(str(file), stream, consumed, settings.decode.max_bytes), how):
            show(line)
            match result:
                case Bad():
                    told += 1
                    tell_bad(result, told, file)
                case Done(record):
                    question, answer = remembering.texts.popleft()
                    try:
                        rated = reader.read(row_of(line.value or b"") or {})
                    except RatingError as error:
                        raise RatingError(f"{file} line {line.number}: {error}") from None
                    if rated is None:
                        unrated += 1
                    elif record.scores:
                        segment = tuple(record.segment[key] for key in keys)
                        group = f"line-{line.number}" if rated.group is None else rated.group
                        values = {metric: score.value for metric, score in record.scores.items()}
                        rows.append(
                            Row(record.id, segment, group, rated.rating, values, record.thresholds, question, answer)
                        )
    return rows, unrated
