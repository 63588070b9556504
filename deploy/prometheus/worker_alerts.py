"""Alerts on the workers and on what they lean on: a score that is missing must be seen as missing, never as good."""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.alert import NUMBER, SHARE, TIME, Alert, label
from deploy.prometheus.recording import Recordings
from deploy.prometheus.score_alerts import segment_named
from deploy.prometheus.table import Row, Table, span

APPLICABLE = 'outcome=~"scored|unscored"'
JUDGE = 'reason=~"judge_.*"'
CACHE_FAULTS = 'result=~"timeout|skipped|error|write_error|write_skipped"'
FINITE = ("groundwatch_rolling_score", "groundwatch_score_weighted_sum_total", "groundwatch_score_weight_total")


def worker_alerts(table: Table, recordings: Recordings) -> Iterator[Alert]:
    yield _share(table.row("ContextMissing"), recordings, 'reason="no_context"', "max", "retrieval found nothing",
                 "Retrieval finds nothing for many questions", "from=1h")  # fmt: skip
    yield _coverage(table, table.row("CoverageLow"))
    yield _not_a_number(table.row("NotANumber"))
    yield _no_input(table, table.row("NoInput"))
    yield _no_scores(table.row("NoScores"), recordings)
    yield _monitor_stalled(table, table.row("MonitorStalled"), recordings)
    yield _monitors_active(table, table.row("MonitorsActive"))
    yield _target_down(table, table.row("TargetDown"))
    yield _targets_gone(table, table.row("TargetsGone"))
    yield _lag(table.row("ScoringLag"))
    yield _age(table.row("EventsOld"))
    yield _share(table.row("Shedding"), recordings, 'reason="shed"', "max", "had to be shed",
                 "More is sampled than can be scored: the scorers shed")  # fmt: skip
    yield _offset_stuck(table.row("OffsetStuck"))
    yield _dead_letters(table.row("DeadLetters"), recordings)
    yield _any(table.row("EventsMissing"), "groundwatch_events_missing_total", "topic",
               "Events of {{ $labels.topic }} were lost before they were read",
               "events had been removed by the topic's retention before the scorers came to them")  # fmt: skip
    yield _any(table.row("OutputRefused"), "groundwatch_output_refused_total", "topic",
               "The broker refuses records for {{ $labels.topic }}",
               "records were refused for good, whatever was taken out of them")  # fmt: skip
    yield _share(table.row("JudgeFailing"), recordings, JUDGE, "metric", "have no verdict, as the judge failed",
                 "The judge of {{ $labels.metric }} fails")  # fmt: skip
    yield _share(table.row("JudgeOverBudget"), recordings, 'reason="budget"', "metric", "were left out for the budget",
                 "The budget of {{ $labels.metric }} is used up long before the day is")  # fmt: skip
    yield _cache_down(table.row("CacheDown"))
    yield _none_up(
        table.row("CaseStoreDown"),
        "groundwatch_case_store_up",
        "Case files are not stored: their Redis does not answer",
        "Case files wait on their topic; the pages and `groundwatch cases` show none that are newer.",
    )
    yield _none_up(
        table.row("PagesDown"),
        "groundwatch_pages_up",
        "No monitor serves the pages",
        "Links from alerts and dashboards to answers lead nowhere; `groundwatch cases` still works.",
    )


def _share(
    row: Row, recordings: Recordings, reasons: str, by: str, what: str, summary: str, case_query: str = ""
) -> Alert:
    """Share of the events that ended without a score for `reasons`. `by` is "metric", or "max": the worst metric."""
    text, seconds = row.text("span"), row.seconds("span")
    unscored, ended = recordings.unscored(text, seconds), recordings.ended(text, seconds)
    keys = ("metric",) if by == "metric" else ()
    each = f"sum by (metric) ({unscored}{{{reasons}}})"
    lead = each if keys else f"max({each})"
    events = f"sum({ended}{{{APPLICABLE}}})"
    # Events have no metric: the count is given to each of them.
    match = " on () group_left ()" if keys else ""
    return Alert(
        name=row.name,
        lead=f"{lead} /{match} ({events} > 0) > {row.number('limit'):g}",
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{events} >= {row.number('events'):g}",),
        summary=summary,
        description=f"{SHARE} of the events of the last {text} {what}.",
        case_query=case_query,
        dashboard="operations",
    )


def _coverage(table: Table, row: Row) -> Alert:
    window = row.window()
    by = ", ".join(table.segments)
    # The metric itself may have no score left, so the guard counts the one that has most.
    enough = f'max by ({by}) (groundwatch:rolling_samples:newest{{window="{window}"}})'
    return Alert(
        name=row.name,
        lead=f'groundwatch:rolling_coverage_ratio:newest{{window="{window}"}} < {row.number("limit"):g}',
        keys=table.segments,
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{enough} >= {row.number('samples'):g}",),
        summary=f"{label('metric')} is missing for many answers of {segment_named(table)}",
        description=(
            f"Only {SHARE} of the answers of the last {window} to which it applies could be scored. "
            "What is missing is not missing by chance, so the score is not to be trusted meanwhile."
        ),
    )


def _not_a_number(row: Row) -> Alert:
    counts = [f'label_replace(count({name} != {name}), "series", "{name}", "", "")' for name in FINITE]
    return Alert(
        name=row.name,
        lead="\nor\n".join(counts),
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary="{{ $labels.series }} holds NaN",
        description="{{ $value }} series of {{ $labels.series }} are NaN, which no threshold ever matches.",
        dashboard="operations",
    )


def _up(job: str) -> str:
    return f'sum(up{{job="{job}"}}) > 0'


def _no_input(table: Table, row: Row) -> Alert:
    seconds = row.seconds("span")
    return Alert(
        name=row.name,
        lead=f"sum(increase(groundwatch_events_in_total[{span(seconds)}])) == 0",
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        # A scorer that is down reads nothing either, but that is another alert.
        guards=(_up(table.scorer_job),),
        summary="No events come in",
        description=f"The scorers are up and have read no event for {row.text('span')}.",
        dashboard="operations",
    )


def _no_scores(row: Row, recordings: Recordings) -> Alert:
    ended = recordings.ended(row.text("span"), row.seconds("span"))
    return Alert(
        name=row.name,
        lead=f'sum({ended}{{outcome="unscored"}})',
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(f'sum({ended}{{outcome="scored"}}) == 0',),
        guards=(f'sum({ended}{{outcome="unscored"}}) >= {row.number("events"):g}',),
        summary="Events come in, and none is scored",
        description=f"{NUMBER} events of the last {row.text('span')} ended without any score.",
        dashboard="operations",
    )


def _monitor_stalled(table: Table, row: Row, recordings: Recordings) -> Alert:
    text, seconds = row.text("span"), row.seconds("span")
    scored = f'sum({recordings.ended(text, seconds)}{{outcome="scored"}})'
    counted = f"sum(increase(groundwatch_scores_read_total[{span(seconds)}]))"
    return Alert(
        name=row.name,
        lead=scored,
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        conditions=(f"{counted} == 0",),
        guards=(f"{scored} >= {row.number('events'):g}", _up(table.monitor_job)),
        summary="Scores are written, and the monitor reads none",
        description=f"{NUMBER} events were scored in the last {text}; no monitor has read a score since.",
        dashboard="operations",
    )


def _monitors_active(table: Table, row: Row) -> Alert:
    return Alert(
        name=row.name,
        lead="sum(groundwatch_monitor_active) != 1",
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(_up(table.monitor_job),),
        summary="{{ $value }} monitors are active, and it must be one",
        description="Without an active monitor no rolling score is shown; with two, each shows only a part.",
        dashboard="operations",
    )


def _target_down(table: Table, row: Row) -> Alert:
    jobs = f'job=~"{table.scorer_job}|{table.monitor_job}"'
    return Alert(
        name=row.name,
        lead=f"count by (job) (up{{{jobs}}} == 0)",
        keys=("job",),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary="A target of {{ $labels.job }} is down",
        description="{{ $value }} target(s) of {{ $labels.job }} do not answer a scrape.",
        dashboard="operations",
    )


def _targets_gone(table: Table, row: Row) -> Alert:
    gone = [
        f'label_replace(vector(0), "job", "{job}", "", "") unless on (job) (sum by (job) (up{{job="{job}"}}) > 0)'
        for job in (table.scorer_job, table.monitor_job)
    ]
    return Alert(
        name=row.name,
        lead="\nor\n".join(gone),
        keys=("job",),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary="No target of {{ $labels.job }} is left",
        description="Prometheus knows no target of {{ $labels.job }} that answers: answers are not watched at all.",
        dashboard="operations",
    )


def _lag(row: Row) -> Alert:
    rate = f"sum by (topic) (rate(groundwatch_events_total[{span(row.seconds('span'))}]))"
    lag = "sum by (topic) (groundwatch_lag_events)"
    return Alert(
        name=row.name,
        lead=f"{lag} / ({rate} > 0) > {row.seconds('limit'):g}",
        keys=("topic",),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{lag} >= {row.number('events'):g}",),
        summary="The scorers are behind on {{ $labels.topic }}",
        description=f"At the present pace the backlog of {label('topic')} takes {TIME} to be read.",
        dashboard="operations",
    )


def _age(row: Row) -> Alert:
    ranged = f"[{span(row.seconds('span'))}]"
    return Alert(
        name=row.name,
        lead=(
            f"histogram_quantile(0.95, sum by (le) (rate(groundwatch_event_age_seconds_bucket{ranged})))\n"
            f"> {row.number('limit'):g}"
        ),
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"sum(increase(groundwatch_event_age_seconds_count{ranged})) >= {row.number('events'):g}",),
        summary="Events are old when they are scored",
        description=f"One event in twenty is older than {TIME} when it is scored.",
        dashboard="operations",
    )


def _offset_stuck(row: Row) -> Alert:
    return Alert(
        name=row.name,
        # Both gauges are of the same process, so an owner that has just changed cannot be mixed up with the last one.
        lead=(
            f"max by (topic) ((time() - groundwatch_progress_timestamp_seconds > {row.seconds('limit'):g}) "
            "and groundwatch_lag_events > 0)"
        ),
        keys=("topic",),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary="A committed offset of {{ $labels.topic }} does not move",
        description=(
            "Events wait on a partition of {{ $labels.topic }}, and its committed offset has not moved for "
            "{{ $value | humanizeDuration }}."
        ),
        dashboard="operations",
    )


def _dead_letters(row: Row, recordings: Recordings) -> Alert:
    text, seconds = row.text("span"), row.seconds("span")
    ended = recordings.ended(text, seconds)
    letters = f"sum by (reason) (increase(groundwatch_deadletters_total[{span(seconds)}]) >= 0)"
    read = f'sum({ended}{{outcome=~"scored|unscored|dead_lettered"}})'
    return Alert(
        name=row.name,
        lead=f"{letters} / on () group_left () ({read} > 0) > {row.number('limit'):g}",
        keys=("reason",),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{letters} >= {row.number('letters'):g}",),
        summary="Events cannot be read: {{ $labels.reason }}",
        description=f"{SHARE} of the events of the last {text} are dead letters for {label('reason')}.",
        dashboard="operations",
    )


def _any(row: Row, counter: str, by: str, summary: str, what: str) -> Alert:
    """One is too many."""
    return Alert(
        name=row.name,
        lead=f"sum by ({by}) (increase({counter}[{span(row.seconds('span'))}])) > 0",
        keys=(by,),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary=summary,
        description=f"{NUMBER} {what} (last {row.text('span')}).",
        dashboard="operations",
    )


def _cache_down(row: Row) -> Alert:
    ranged = f"[{span(row.seconds('span'))}]"
    # Caches in a process are named `..._memory` and cannot fail.
    failed = f'sum by (cache) (increase(groundwatch_cache_requests_total{{cache=~".*_redis",{CACHE_FAULTS}}}{ranged}))'
    every = f'sum by (cache) (increase(groundwatch_cache_requests_total{{cache=~".*_redis"}}{ranged}))'
    return Alert(
        name=row.name,
        lead=f"{failed} / ({every} > 0) > {row.number('limit'):g}",
        keys=("cache",),
        severity=row.severity,
        for_seconds=row.hold_off,
        guards=(f"{every} >= {row.number('requests'):g}",),
        summary="Redis does not answer ({{ $labels.cache }})",
        description=f"{SHARE} of the requests to Redis fail or are not even tried. Scoring goes on, slower.",
        dashboard="operations",
    )


def _none_up(row: Row, gauge: str, summary: str, description: str) -> Alert:
    """No monitor says 1. One is enough: of two on one machine only one can serve the pages."""
    return Alert(
        name=row.name,
        lead=f"max({gauge}) == 0",
        keys=(),
        severity=row.severity,
        for_seconds=row.hold_off,
        summary=summary,
        description=description,
        dashboard="operations",
    )
