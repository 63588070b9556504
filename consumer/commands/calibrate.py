"""`groundwatch calibrate`: a validated set in, a baseline out: distributions, and thresholds set from them."""

from __future__ import annotations

import logging
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click
from rich.console import Console

from consumer import logs
from consumer.calibrate import Plan, ScoredSet, build_baseline
from consumer.calibrate_view import baseline_tables, notes
from consumer.cli import loaded_settings
from consumer.decode import Decoder, MappingError
from consumer.file_progress import shown_progress, tell_bad
from consumer.finite import FiniteRange
from consumer.output_places import check_outputs
from consumer.record_building import versions_in_force
from consumer.redaction import Redactor
from consumer.results import Results
from consumer.score_file import Bad, Decodes, Done, FileUnusable, Scoring, lines, opened, results, written
from consumer.segments import Segmenter
from consumer.settings import Settings
from consumer.thresholds import ThresholdTable
from consumer.validated_set import IdealAnswers
from metrics.baseline import Baseline, encode_baseline
from metrics.evaluation import Evaluator
from metrics.threshold_choice import ALARMS, Rule, parse_rule

WIDTH = 170
"""Of the table where there is no terminal to ask."""
PICTURES = (".svg", ".png", ".pdf")
_INPUT = click.Path(path_type=Path, exists=True, dir_okay=False)
_OUTPUT = click.Path(path_type=Path, dir_okay=False)
_SHARE = FiniteRange(0.0, 1.0, min_open=True, max_open=True)


@click.command("calibrate")
@click.argument("good", type=_INPUT)
@click.option("--bad", type=_INPUT, help="Examples of bad answers, in the same form.")
@click.option("--out", type=_OUTPUT, required=True, help="The baseline (JSON): name it in baseline.file.")
@click.option("--plot", type=_OUTPUT, help="The distributions, .svg, .png or .pdf (default: --out as .svg).")
@click.option(
    "--false-alarms", "alarms", type=_SHARE, default=ALARMS, show_default=True,
    help="Share of good answers that may be flagged.",
)  # fmt: skip
@click.option(
    "--choose", "rule", metavar="RULE",
    help="With --bad: balanced (the default there), f1, precision=SHARE, recall=SHARE or false-alarms=SHARE.",
)  # fmt: skip
@click.option("--bad-share", type=_SHARE, help="Share of bad answers in your traffic, for precision (default: files').")
@click.option(
    "--min-segment", "fewest", type=click.IntRange(min=20), default=100, show_default=True,
    help="Good answers from which a segment gets a threshold of its own.",
)  # fmt: skip
@click.option(
    "--good-answer", type=click.Choice(["reference", "answer"]), default="reference", show_default=True,
    help="What was validated where a row has both.",
)  # fmt: skip
@click.pass_context
def command(
    ctx: click.Context,
    good: Path,
    bad: Path | None,
    out: Path,
    plot: Path | None,
    alarms: float,
    rule: str | None,
    bad_share: float | None,
    fewest: int,
    good_answer: Literal["reference", "answer"],
) -> None:
    """Score GOOD, a validated set (JSON lines: question, contexts, ideal answer), and write what is normal there.

    Thresholds are set by the share of false alarms, or with --bad by a trade-off. Exit codes: 0 written; 1 nothing
    could be scored, or a file or the model cannot be used; 2 bad arguments.
    """
    settings = _settings(loaded_settings(ctx).settings)
    logs.configure(settings.logging)
    chosen = _rule(rule, bad, alarms)
    if bad is None and bad_share is not None:
        raise click.UsageError("--bad-share is for precision, which needs --bad")
    picture = _picture(plot, out)
    check_outputs({"--out": out, "--plot": picture}, {"GOOD": good, "--bad": bad})
    try:
        decoder = Decoder(settings.decode)
    except MappingError as error:
        raise click.UsageError(str(error)) from None
    evaluator = _evaluator(settings)
    ideal = IdealAnswers(decoder)
    good_set = _scored(good, ideal if good_answer == "reference" else decoder, settings, evaluator)
    bad_set = ScoredSet(tuple(settings.segments.allow)) if bad is None else _scored(bad, decoder, settings, evaluator)
    source = {"good": f"{good.name}: {good_set.events} answers"}
    if bad is not None:
        source["bad"] = f"{bad.name}: {bad_set.events} answers"
    baseline, missing = build_baseline(
        good_set, bad_set, Plan(chosen, alarms, fewest, bad_share), definitions=evaluator.definitions,
        versions=versions_in_force(evaluator), created=time.time(), source=source,
    )  # fmt: skip
    if not baseline.distributions:
        raise click.ClickException(f"{good}: no answer could be scored, so there is nothing to calibrate on")
    try:
        with written(out, sys.stdout.buffer) as sink:
            sink.write(encode_baseline(baseline))
    except FileUnusable as error:
        raise click.ClickException(str(error)) from None
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(*baseline_tables(baseline))
    for line in (*_read_how(good, good_set, ideal, bad, bad_set), *notes(baseline, missing, chosen, fewest)):
        console.print(line, markup=False)
    console.print(f"written: {out}; use it with baseline.file = {str(out)!r}, or score-file --baseline", markup=False)
    _draw(baseline, good_set, bad_set, picture, console)


def _settings(settings: Settings) -> Settings:
    """Of the stream, with sketches: drift of questions and contexts is measured from them."""
    return settings.model_copy(
        update={
            "scoring": settings.scoring.model_copy(update={"sketch": True}),
            "cases": settings.cases.model_copy(update={"audit_share": 0.0}),
            "scorer": settings.scorer.model_copy(update={"run": "calibrate"}),
        }
    )


def _rule(text: str | None, bad: Path | None, alarms: float) -> Rule:
    if text is None:
        return Rule("false_alarms", alarms) if bad is None else Rule("balanced")
    try:
        rule = parse_rule(text)
    except ValueError as error:
        raise click.UsageError(f"--choose {error}") from None
    if bad is None and rule.method != "false_alarms":
        raise click.UsageError(f"--choose {rule} is a trade-off, which needs examples of bad answers: --bad")
    return rule


def _picture(plot: Path | None, out: Path) -> Path | None:
    """Where to draw; None where nobody asked and matplotlib is not there."""
    there = find_spec("matplotlib") is not None
    if plot is None:
        return out.with_suffix(".svg") if there else None
    if plot.suffix not in PICTURES:
        raise click.UsageError(f"--plot {plot}: the name must end in {', '.join(PICTURES)}")
    if not there:
        raise click.UsageError("--plot needs matplotlib: pip install 'groundwatch[plots]'")
    return plot


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


def _scored(file: Path, decoder: Decodes, settings: Settings, evaluator: Evaluator) -> ScoredSet:
    found = ScoredSet(tuple(settings.segments.allow))
    how = Scoring(
        decoder,
        Redactor(settings.redaction),
        Segmenter(settings.segments),
        evaluator,
        Results(settings, ThresholdTable(()), evaluator.definitions, versions_in_force(evaluator), time.time),
        file.name,
        file.stat().st_mtime,
        settings.judge.concurrency,
    )
    told = 0
    try:
        with opened(file) as (stream, consumed), shown_progress(file) as show:
            for line, result in results(lines(str(file), stream, consumed, settings.decode.max_bytes), how):
                match result:
                    case Done(record):
                        found.add(record)
                    case Bad():
                        told += 1
                        tell_bad(result, told, file)
                show(line)
    except FileUnusable as error:
        raise click.ClickException(str(error)) from None
    return found


def _read_how(good: Path, good_set: ScoredSet, ideal: IdealAnswers, bad: Path | None, bad_set: ScoredSet) -> list[str]:
    said = [f"{good.name}: {good_set.events} answers"]
    if ideal.by_reference + ideal.by_answer:
        said[0] += f" ({ideal.by_reference} by their ideal answer, {ideal.by_answer} by the answer that was logged)"
    if bad is not None:
        said.append(f"{bad.name}: {bad_set.events} answers")
        both = len(good_set.content & bad_set.content)
        if both:
            said.append(f"{both} answers stand in both files: one of the two is wrong about them")
    repeated = good_set.repeated + bad_set.repeated
    return said + ([f"{repeated} rows were there before and are not counted again"] if repeated else [])


def _draw(baseline: Baseline, good: ScoredSet, bad: ScoredSet, picture: Path | None, console: Console) -> None:
    if picture is None:
        console.print("not drawn: pip install 'groundwatch[plots]' for a picture of the distributions", markup=False)
        return
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from consumer.calibrate_plot import draw

    try:
        draw(baseline, good, bad, picture)
    except OSError as error:
        raise click.ClickException(f"{picture}: cannot be written: {error.strerror}") from None
    console.print(f"drawn: {picture}", markup=False)
