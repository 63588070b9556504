"""`groundwatch plan`: what a load needs in cores, memory and money, before anything is deployed."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click
import orjson

from consumer.cli import loaded_settings
from consumer.finite import FiniteRange
from consumer.settings import Settings
from consumer.sizing import Load, Machine, Plan, plan

_SHARE = FiniteRange(0, 1)
_POSITIVE = FiniteRange(min=0, min_open=True)
_AMOUNT = FiniteRange(min=0)


@click.command("plan")
@click.option(
    "--events-per-second",
    type=FiniteRange(0, 1e9, min_open=True),
    required=True,
    help="Answers logged a second, when busiest.",
)
@click.option("--rate", type=FiniteRange(0, 1, min_open=True), help="Share scored (default: sampling.rate).")
@click.option("--passages", type=_AMOUNT, default=5, show_default=True, help="Passages of an answer.")
@click.option("--words", type=_AMOUNT, default=150, show_default=True, help="Words of a passage.")
@click.option("--answer-words", type=_AMOUNT, default=40, show_default=True)
@click.option("--statements", type=_AMOUNT, default=4, show_default=True, help="Statements of an answer.")
@click.option("--recurring", type=_SHARE, default=0.9, show_default=True, help="Share of passages that come again.")
@click.option("--flagged", type=_SHARE, default=0.05, show_default=True, help="Share of answers that get a case file.")
@click.option("--segments", type=click.IntRange(min=1), help="Segments in use (default: those of segments.allow).")
@click.option(
    "--judge-tokens", type=_AMOUNT, default=0, show_default=True, help="An LLM judge's, an answer; 0: lexical."
)
@click.option("--judge-seconds", type=_AMOUNT, default=5, show_default=True, help="Time of the LLM judge, an answer.")
@click.option("--price", type=_AMOUNT, default=0, show_default=True, help="Of a million of its tokens.")
@click.option("--cores", type=_POSITIVE, help="Cores of one scorer (default: of this machine).")
@click.option("--tokens-per-second", type=_POSITIVE, default=Machine(1).tokens_per_second, show_default=True,
              help="Of the embedding model on one core; `groundwatch models verify` measures it here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    events_per_second: float,
    rate: float | None,
    segments: int | None,
    cores: float | None,
    tokens_per_second: float,
    as_json: bool,
    **about: Any,
) -> None:
    """Print what a load needs: cores, memory, disk, money, and how soon an alert can be raised.

    Exit code 3 where the work exceeds the cores of one scorer.
    """
    settings = loaded_settings(ctx).settings
    sampling = settings.sampling
    load = Load(
        events_per_second=events_per_second,
        rate=sampling.rate if rate is None else rate,
        segments=_segments(settings) if segments is None else segments,
        # An always-rule looks into every event.
        id_is_seen=bool(sampling.id_header or sampling.key_is_id) and not sampling.always,
        **about,
    )
    machine = Machine(float(cores or os.cpu_count() or 1), tokens_per_second)
    needed = plan(load, machine)
    if as_json:
        click.echo(orjson.dumps(asdict(needed) | {"scorer_cores": needed.scorer_cores}, option=orjson.OPT_INDENT_2))
    else:
        for line in _lines(load, machine, needed):
            click.echo(line)
    for warning in needed.warnings:
        click.echo(f"warning: {warning}", err=True)
    if needed.scorer_cores > machine.cores:
        ctx.exit(3)


def _segments(settings: Settings) -> int:
    count = 1
    for values in settings.segments.allow.values():
        count *= max(1, len(values))
    return count


def _lines(load: Load, machine: Machine, needed: Plan) -> list[str]:
    decoded = "" if load.id_is_seen else "; every event is decoded (sampling.id_header or key_is_id would spare that)"
    judge = (
        f"an LLM: {needed.judge_requests_at_once:.1f} requests at once, {needed.judge_tokens_a_day / 1e6:.1f} million "
        f"tokens a day, {needed.judge_money_a_day:.2f} a day"
        if load.judge_tokens
        else f"lexical: {needed.judging_cores:.2f} cores"
    )
    return [
        f"scored      {needed.scored_per_second:.3g} of {load.events_per_second:g} events/s",
        f"reading     {needed.reading_cores:.2f} cores{decoded}",
        f"embedding   {needed.embedding_cores:.2f} cores at {machine.tokens_per_second:g} tokens/s a core",
        f"judge       {judge}",
        f"scorers     {needed.scorer_cores:.2f} busy cores in all: {needed.scorers} with {machine.cores:g} cores each",
        f"monitor     {needed.monitor_cores:.2f} cores; one active, one standby",
        f"memory      {needed.scorer_mb} MB a scorer, {needed.monitor_mb} MB a monitor, at the most",
        f"Redis       cache {needed.cache_mb_a_day:.0f} MB a day, case files {needed.cases_mb:.0f} MB a day",
        f"Kafka       score records {needed.scores_gb_a_month:.2f} GB in 30 days",
        f"alerts      a segment has enough samples for one after {needed.minutes_to_alert:.1f} min",
    ]
