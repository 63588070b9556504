"""`groundwatch judge-check`: is the configured judge fit, how fast is it, and what would it cost?"""

from __future__ import annotations

from pathlib import Path

import click

from consumer import logs
from consumer.cli import loaded_settings
from consumer.finite import FiniteRange
from consumer.inert_text import inert
from consumer.judging.checking import (
    CasesUnusable,
    CheckCase,
    Checked,
    Report,
    built_in_cases,
    check,
    labelled_cases,
    report,
)
from consumer.judging.remote_judge import RemoteJudge
from consumer.settings import Settings
from consumer.terminal_text import shortened
from metrics.interval import wilson
from metrics.llm.names import FAITHFULNESS
from metrics.model_files import ModelError
from metrics.outcome import Reason

UNFIT_EXIT = 3
WHY_CHARACTERS = 70
NO_REPLY = frozenset((Reason.JUDGE_ERROR, Reason.JUDGE_BUSY, Reason.JUDGE_TIMEOUT, Reason.JUDGE_PARSE))
ENOUGH_FAILURES = 3
"""After so many without a single reply it is not worth while to go on."""


@click.command("judge-check")
@click.option(
    "--labelled",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='Your own cases: events, one a line, each with "expected" or "faithful".',
)
@click.option("--at-least", default=0.75, show_default=True, type=FiniteRange(0, 1), help="Agreement, else exit 3.")
@click.pass_context
def command(ctx: click.Context, labelled: Path | None, at_least: float) -> None:
    """Send cases with known verdicts to the judge of the settings; print agreement, latency, tokens and cost.

    The built-in cases (English and Chinese: supported, number, negation, contradiction, not found, refusal, injection)
    are a smoke test of some minutes, not a measurement: for that, label answers of your own. Nothing is cached. Exit
    codes: 0 fit; 1 the judge cannot be asked; 2 bad arguments; 3 it agrees too seldom.
    """
    settings = _for_check(loaded_settings(ctx).settings)
    logs.configure(settings.logging)
    cases = _cases(settings, labelled)
    judge = _judge(settings)
    click.echo(f"{len(cases)} cases to {settings.judge.model}; metrics {', '.join(judge.definitions)}")
    checked = []
    for one in check(cases, judge):
        _show(one)
        checked.append(one)
        if not any(c.calls for c in checked) and sum(c.found in NO_REPLY for c in checked) >= ENOUGH_FAILURES:
            break
    if not any(one.calls for one in checked):
        if any(one.found in NO_REPLY for one in checked):
            raise click.ClickException(
                "the judge gives no reply that can be read; what it said is above; see: groundwatch doctor"
            )
        raise click.ClickException("no case needed the judge (refusals do not): nothing is known of it")
    found = report(checked)
    _sum_up(found, settings)
    if found.exact / found.cases < at_least:
        click.echo(
            f"not fit: it agrees on {found.exact / found.cases:.0%}, at least {at_least:.0%} are asked for", err=True
        )
        ctx.exit(UNFIT_EXIT)


def _for_check(settings: Settings) -> Settings:
    """The settings, without cache: what was judged before would cost and take nothing."""
    if settings.judge.kind != "llm":
        local = "; the local judge is tried by: groundwatch models verify verifier"
        raise click.UsageError(
            "this asks an LLM judge: set judge.kind = 'llm', judge.url and judge.model"
            + (local if settings.judge.kind == "local" else "")
        )
    if FAITHFULNESS not in settings.scoring.metrics:
        raise click.UsageError("the cases are judged for faithfulness: name it in scoring.metrics")
    return settings.model_copy(update={"judge": settings.judge.model_copy(update={"cache": False})})


def _cases(settings: Settings, labelled: Path | None) -> list[CheckCase]:
    if labelled is None:
        return built_in_cases()
    from consumer.decode import Decoder, MappingError
    from consumer.redaction import Redactor

    try:
        return labelled_cases(labelled, Decoder(settings.decode), Redactor(settings.redaction))
    except (CasesUnusable, MappingError) as error:
        raise click.UsageError(f"--labelled: {error}") from None


def _judge(settings: Settings) -> RemoteJudge:
    from consumer.embedders import build_evaluator

    try:
        remote = build_evaluator(settings, None).remote
    except (ModelError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    assert isinstance(remote, RemoteJudge)
    return remote


def _show(one: Checked) -> None:
    sign = (
        click.style("✓", fg="green")
        if one.exact
        else click.style("≈", fg="yellow")
        if one.sided
        else click.style("✗", fg="red")
    )
    said = f"{sign} {shortened(one.case.event.id, 24):<24} {one.case.expected.value:<13}"
    found = "" if one.exact else f" found {one.found}"
    why = f"  {inert(shortened(' '.join(one.why.split()), WHY_CHARACTERS))}" if one.why and not one.exact else ""
    click.echo(f"{said} {one.seconds:6.1f} s {one.prompt_tokens + one.completion_tokens:6d} tokens{found}{why}")


def _sum_up(found: Report, settings: Settings) -> None:
    click.echo("")
    interval = wilson(found.exact / found.cases, found.cases)
    click.echo(
        f"agreement   {found.exact} of {found.cases} ({found.exact / found.cases:.0%}, 95 % interval "
        f"{interval.low:.0%} to {interval.high:.0%})"
        + (f"; {found.sided - found.exact} more on the right side (≈)" if found.sided > found.exact else "")
    )
    if found.balanced is not None:
        click.echo(f"            balanced accuracy of supported against not supported {found.balanced:.0%}")
    if len(found.by_kind) > 1:
        click.echo("            " + ", ".join(f"{kind} {right}/{of}" for kind, (right, of) in found.by_kind.items()))
    if found.unscored:
        missing = ", ".join(f"{reason} {n}" for reason, n in found.unscored.items())
        click.echo(f"unscored    {missing} (counted as wrong)")
    click.echo(f"latency     median {found.median_seconds:.1f} s an answer, slowest {found.slowest_seconds:.1f} s")
    tokens = found.prompt_tokens + found.completion_tokens
    click.echo(
        f"tokens      {tokens:,.0f} an answer ({found.prompt_tokens:,.0f} prompt, {found.completion_tokens:,.0f} "
        f"completion) in {found.calls:.1f} calls"
    )
    judge, rate = settings.judge, settings.sampling.rate
    price = (found.prompt_tokens * judge.prompt_price + found.completion_tokens * judge.completion_price) / 1000
    told = (
        f"{1000 * rate * price:,.4g} per 1,000 events at sampling.rate {rate:g}"
        if price
        else ("set judge.prompt_price and judge.completion_price (of 1,000 tokens)")
    )
    click.echo(f"cost        {told}; {1000 * rate * tokens:,.0f} tokens")
    if found.median_seconds > 0:
        click.echo(
            f"capacity    about {60 * judge.concurrency / found.median_seconds:,.0f} answers a minute at "
            f"judge.concurrency {judge.concurrency}, if the server keeps its pace; longer texts take longer"
        )
