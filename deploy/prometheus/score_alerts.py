"""Alerts on what the scores say. Each has a guard: enough samples, so that nobody is woken by three answers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deploy.prometheus.alert import NUMBER, SCORE, SHARE, Alert, label
from deploy.prometheus.recording import NEWEST, THRESHOLD, Recordings
from deploy.prometheus.table import Row, Table, span

CANONICAL_TARGET = 0.999


def multiplier(canonical: float, target: float) -> float:
    """How fast the error budget must burn for an alert, at this target.

    The usual multipliers (14.4, 6, 1) are made for a target of 99.9 %, whose budget can burn up to 1,000 times as fast
    as planned. A budget of share b burns 1/b times as fast at the most, so the multiplier is placed at the same point
    of the (logarithmic) way from 1 to that most: canonical ** (log(1/b) / log(1000)).

    >>> [round(multiplier(14.4, target), 2) for target in (0.999, 0.99, 0.9)]
    [14.4, 5.92, 2.43]
    """
    power = math.log(1.0 - target) / math.log(1.0 - CANONICAL_TARGET)
    return float(canonical**power)


def score_alerts(table: Table, recordings: Recordings) -> Iterator[Alert]:
    yield _faithfulness(table, table.row("FaithfulnessLow"))
    yield _topic(table, table.row("TopicDrift"))
    yield _drift(table, table.row("DriftSpike"))
    yield _input_drift(table, table.row("InputDrift"))
    yield _change(table, table.row("ChangeDetected"))
    yield _refusals(table, table.row("RefusalsHigh"))
    for name in ("FlaggedBudgetFast", "FlaggedBudgetMedium", "FlaggedBudgetSlow"):
        yield _budget(table, table.row(name), recordings)
    yield _retrieval(table, table.row("RetrievalFailing"), recordings)


def rolling(name: str, metric: str, window: str) -> str:
    return f'groundwatch:{name}:newest{{metric="{metric}",window="{window}"}}'


def _looked_up(expr: str, segments: tuple[str, ...], form: str) -> str:
    """A template that asks for one more number, for the alert's own segment. `expr` ends with the braces of labels."""
    own = "".join(f",{name}='%s'" for name in segments)
    values = "".join(f" $labels.{name}" for name in segments)
    asked = expr.replace('"', "'").removesuffix("}") + own + "}"
    shown = f'{{{{ . | first | value | printf "{form}" }}}}'
    return f'{{{{ with printf "{asked}"{values} | query }}}}{shown}{{{{ else }}}}?{{{{ end }}}}'


def segment_named(table: Table) -> str:
    return " / ".join(label(name) for name in table.segments)


def _enough(table: Table, row: Row, metric: str) -> tuple[str, ...]:
    window = row.window()
    return (
        f"{rolling('rolling_effective_samples', metric, window)} >= {row.number('samples'):g}",
        f"{rolling('rolling_coverage_ratio', metric, window)} >= {row.number('coverage'):g}",
    )


def _faithfulness(table: Table, row: Row) -> Alert:
    window, keys = row.window(), table.segments
    high = rolling("rolling_score_high", "faithfulness", window)
    limit = f'{THRESHOLD}{{metric="faithfulness"}} + {row.number("margin"):g}'
    low, top, n = (
        _looked_up(rolling(name, "faithfulness", window), keys, form)
        for name, form in (("rolling_score_low", "%.2f"), ("rolling_score_high", "%.2f"), ("rolling_samples", "%.0f"))
    )
    return Alert(
        name=row.name,
        lead=rolling("rolling_score", "faithfulness", window),
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(f"{high} < on ({', '.join(keys)}) ({limit})",),
        guards=_enough(table, row, "faithfulness"),
        hold_seconds=table.hold,
        summary=f"Answers of {segment_named(table)} are less faithful to their passages than they should be",
        description=(
            f"Mean faithfulness of the last {window} is {SCORE} (95 % interval {low} to {top}, "
            f"n = {n}), and the whole interval lies below the threshold in force plus {row.number('margin'):g}."
        ),
        case_query=f"flag=faithfulness_low&from={window}",
    )


def _topic(table: Table, row: Row) -> Alert:
    window, reference, keys = row.window(), row.window("reference"), table.segments
    seconds = row.window_seconds()
    before = f"{rolling('rolling_score_low', 'topic_similarity', reference)} offset {span(seconds)}"
    old_n = f"{rolling('rolling_samples', 'topic_similarity', reference)} offset {span(seconds)}"
    # Cosines of another model are another scale: there is nothing to compare with until the definition has a past.
    settled = f'(time() - {NEWEST}{{metric="topic_similarity"}}) > {2 * seconds:g}'
    high = rolling("rolling_score_high", "topic_similarity", window)
    return Alert(
        name=row.name,
        lead=rolling("rolling_score", "topic_similarity", window),
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(f"{high} < {_matched(keys)} ({before} - {row.number('fall'):g})",),
        guards=(
            *_enough(table, row, "topic_similarity"),
            f"{old_n} >= {row.number('reference_samples'):g}",
            f"{rolling('rolling_samples', 'topic_similarity', window)} and on () max({settled})",
        ),
        hold_seconds=table.hold,
        summary=f"Answers of {segment_named(table)} have moved away from what was retrieved",
        description=(
            f"Mean topic similarity of the last {window} is {SCORE}; its interval lies more than "
            f"{row.number('fall'):g} below that of the {reference} before. This says that the subject moved, not that "
            "answers are wrong."
        ),
        case_query=f"flag=topic_similarity_low&from={window}",
        dashboard="quality",
    )


def _drift(table: Table, row: Row) -> Alert:
    window, keys = row.window(), ("metric", *table.segments)
    by = ", ".join(keys)
    labels = f'statistic="psi",reference="baseline",window="{window}",metric!~"question|context"'
    return Alert(
        name=row.name,
        lead=f"max by ({by}) (groundwatch_drift{{{labels}}}) > {row.number('limit'):g}",
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(
            f"max by ({by}) (groundwatch_drift{{{labels}}}) > max by ({by}) (groundwatch_drift_null_high{{{labels}}})",
        ),
        guards=(f'groundwatch:rolling_samples:newest{{window="{window}"}} >= {row.number("samples"):g}',),
        summary=f"The distribution of {label('metric')} in {segment_named(table)} has left its baseline",
        description=(
            f"PSI of {label('metric')} over the last {window} against the baseline is {SCORE}, "
            f"above {row.number('limit'):g} and above what chance makes at this number of samples."
        ),
        case_query=f"from={window}",
        dashboard="quality",
    )


def _input_drift(table: Table, row: Row) -> Alert:
    window, keys = row.window(), ("metric", *table.segments)
    by = ", ".join((*keys, "statistic"))
    labels = f'reference="baseline",window="{window}",metric=~"question|context"'
    enough = f'max by ({", ".join(table.segments)}) (groundwatch:rolling_samples:newest{{window="{window}"}})'
    times = row.number("times_null")
    return Alert(
        name=row.name,
        lead=f"max by ({by}) (groundwatch_drift{{{labels}}})\n"
        f"> {times:g} * max by ({by}) (groundwatch_drift_null_high{{{labels}}})",
        keys=table.segments,
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{enough} >= {row.number('samples'):g}",),
        summary=f"What is asked or retrieved in {segment_named(table)} differs from the baseline ({label('metric')})",
        description=(
            f"{label('statistic')} of {label('metric')} embeddings over the last {window} is "
            f"{SCORE}, more than {times:g} times what chance makes at this number of samples."
        ),
        case_query=f"from={window}",
        dashboard="quality",
    )


def _change(table: Table, row: Row) -> Alert:
    seconds, keys = row.seconds("span"), ("metric", *table.segments)
    window = row.window()
    enough = f'max by ({", ".join(keys)}) (groundwatch:rolling_samples:newest{{window="{window}"}})'
    return Alert(
        name=row.name,
        lead=f"sum by ({', '.join(keys)}) (increase(groundwatch_changes_total[{span(seconds)}]) >= 0) > 0",
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{enough} >= {row.number('samples'):g}",),
        summary=f"{label('metric')} of {segment_named(table)} has changed",
        description=(
            f"The change detector found {NUMBER} change(s) of {label('metric')} within the last "
            f"{row.text('span')}. Estimated start and size stand on the monitor's overview page."
        ),
        case_query=f"from={row.text('span')}",
        dashboard="quality",
    )


def _refusals(table: Table, row: Row) -> Alert:
    window, keys = row.window(), table.segments
    by = ", ".join(keys)
    return Alert(
        name=row.name,
        lead=f'max by ({by}) (groundwatch_rolling_refusal_ratio{{window="{window}"}}) > {row.number("limit"):g}',
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(
            f'max by ({by}) (groundwatch:rolling_samples:newest{{window="{window}"}}) >= {row.number("samples"):g}',
        ),
        summary=f"{segment_named(table)} refuses to answer too often",
        description=f"{SHARE} of the answers of the last {window} refuse or claim nothing.",
        case_query=f"from={window}",
    )


def _budget(table: Table, row: Row, recordings: Recordings) -> Alert:
    target, keys = table.target, table.segments
    times = multiplier(row.number("multiplier"), target)
    limit = times * (1.0 - target)
    long, short = (recordings.flagged_ratio(row.text(key), row.seconds(key)) for key in ("long", "short"))
    answers = recordings.answers(row.text("long"), row.seconds("long"))
    return Alert(
        name=row.name,
        lead=f"{long} > {limit:.4g}",
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(f"{short} > {limit:.4g}",),
        guards=(f"{answers} >= {row.number('samples'):g}",),
        summary=f"Too many answers of {segment_named(table)} are flagged: the error budget burns",
        description=(
            f"{SHARE} of the answers of the last {row.text('long')} were flagged, and as many of the "
            f"last {row.text('short')}. The objective allows {1 - target:.3g}; above {limit:.3g} the budget burns "
            f"more than {times:.2g} times as fast as planned."
        ),
        case_query=f"from={row.text('long')}",
    )


def _retrieval(table: Table, row: Row, recordings: Recordings) -> Alert:
    text, seconds, keys = row.text("span"), row.seconds("span"), table.segments
    by = ", ".join(keys)
    answers = recordings.answers(text, seconds)
    # An answer may have several flags, all of one fault: the most frequent flag is the nearest to a number of answers.
    flagged = f'increase(groundwatch_flagged_total{{fault="retrieval"}}[{span(seconds)}]) >= 0'
    return Alert(
        name=row.name,
        lead=f"max by ({by}) (sum by (flag, {by}) ({flagged})) / {answers} > {row.number('limit'):g}",
        keys=keys,
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{answers} >= {row.number('samples'):g}",),
        summary=f"Retrieval of {segment_named(table)} returns the wrong passages",
        description=(
            f"{SHARE} of the scored answers of the last {text} were flagged with `retrieval` as the likely "
            "fault: the passages do not fit the question."
        ),
        case_query=f"fault=retrieval&from={text}",
    )


def _matched(keys: tuple[str, ...]) -> str:
    """Two windows of one segment: `window` differs."""
    return f"on ({', '.join(keys)})"
