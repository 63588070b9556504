"""On-call: which segment, since when, which flag, which part is at fault?"""

from __future__ import annotations

from deploy.grafana.panel import Dashboard, Link, Panel, Query
from deploy.grafana.parts import cases, changes, dashboard_links, selector, variables
from deploy.prometheus.table import Table


def on_call(table: Table) -> Dashboard:
    every, each = selector(table), selector(table, every=False)
    named = " / ".join(f"{{{{{name}}}}}" for name in table.segments)
    labels = ("metric", "window", *table.segments)
    first, by = table.segments[0], ", ".join(table.segments)
    compared = f'window="$window",{first}!="all"'
    stated = f"increase(groundwatch_statements_total{{{each}}}[$__rate_interval])"
    unsupported = f'increase(groundwatch_statements_total{{verdict!="supported",{each}}}[$__rate_interval])'
    whole = f'window="$window",{first}="all"'
    during = "&from=${__from:date:iso}&to=${__to:date:iso}"
    return Dashboard(
        "groundwatch-oncall",
        "Groundwatch: On-call",
        "Which segment, since when, which flag and which part is the likely fault.",
        (
            (
                "What fires",
                (
                    Panel(
                        "Alerts",
                        "table",
                        (
                            Query(
                                'ALERTS{service="groundwatch"}',
                                labels=("alertname", "alertstate", "severity"),
                                instant=True,
                            ),
                        ),
                        "Each has a runbook: docs/runbooks/.",
                        width=16,
                    ),
                    Panel(
                        "Answers that are watched",
                        "stat",
                        (
                            Query(
                                f"max by ({first}) (groundwatch:rolling_samples:newest{{{whole}}})",
                                "samples",
                                (first,),
                            ),
                        ),
                        "Samples of the window over all segments. 0: nothing here means anything.",
                        width=4,
                        limits=((None, "red"), (50.0, "green")),
                    ),
                    Panel(
                        "Budget",
                        "stat",
                        (
                            Query(
                                f'groundwatch:flagged_answers:ratio1h{{{first}="all"}} / {1 - table.target:.4g}',
                                "burns",
                                table.segments,
                            ),
                        ),
                        "Times as fast as planned, over the last hour.",
                        width=4,
                        limits=((None, "green"), (1.0, "orange"), (2.0, "red")),
                    ),
                ),
            ),
            (
                "Which segment, since when",
                (
                    Panel(
                        "Faithfulness by segment",
                        "timeseries",
                        (
                            Query(
                                f'groundwatch:rolling_score:newest{{metric="faithfulness",{compared}}}',
                                named,
                                labels,
                            ),
                        ),
                        unit="percentunit",
                        links=(Link("Cases", cases(table, "&flag=faithfulness_low")),),
                    ),
                    Panel(
                        "Question and passages by segment",
                        "timeseries",
                        (
                            Query(
                                f'groundwatch:rolling_score:newest{{metric="question_context_similarity",{compared}}}',
                                named,
                                labels,
                            ),
                        ),
                        "It falls where retrieval is at fault.",
                        links=(Link("Cases", cases(table, "&fault=retrieval")),),
                    ),
                ),
            ),
            (
                "What is wrong with the answers",
                (
                    Panel(
                        "Flags an hour, by flag",
                        "timeseries",
                        (
                            Query(
                                f"sum by (flag) (rate(groundwatch_flagged_total{{{each}}}[$__rate_interval])) * 3600",
                                "{{flag}}",
                                ("flag",),
                                exemplar=True,
                            ),
                        ),
                        links=(
                            Link(
                                "Cases",
                                "${pages}/cases?flag=${__field.labels.flag}" + during,
                            ),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Flags an hour, by likely fault",
                        "timeseries",
                        (
                            Query(
                                f"sum by (fault) (rate(groundwatch_flagged_total{{{each}}}[$__rate_interval])) * 3600",
                                "{{fault}}",
                                ("fault",),
                            ),
                        ),
                        links=(
                            Link(
                                "Cases",
                                "${pages}/cases?fault=${__field.labels.fault}" + during,
                            ),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Statements that are not supported",
                        "timeseries",
                        (
                            Query(
                                f"sum by (verdict) ({unsupported}) / on () group_left () (sum({stated}) > 0)",
                                "{{verdict}}",
                                ("verdict",),
                            ),
                        ),
                        unit="percentunit",
                        least=0,
                    ),
                    Panel(
                        "Statements against which a passage speaks",
                        "timeseries",
                        (
                            Query(
                                f"sum(increase(groundwatch_statement_conflicts_total{{{each}}}[$__rate_interval]))",
                                "conflicts",
                            ),
                            Query(
                                f"sum(increase(groundwatch_evasive_total{{{each}}}[$__rate_interval]))",
                                "evasive",
                            ),
                        ),
                        "One passage supports and another contradicts: the documents disagree.",
                        least=0,
                    ),
                ),
            ),
            (
                "Can it be trusted",
                (
                    Panel(
                        "Coverage",
                        "timeseries",
                        (
                            Query(
                                f'groundwatch:rolling_coverage_ratio:newest{{window="$window",{every}}}',
                                f"{{{{metric}}}} {named}",
                                labels,
                            ),
                        ),
                        unit="percentunit",
                        most=1,
                    ),
                    Panel(
                        "Time since the last answer",
                        "timeseries",
                        (
                            Query(
                                f"time() - max by ({by}) (groundwatch_last_answer_timestamp_seconds{{{each}}} > 0)",
                                named,
                                table.segments,
                            ),
                        ),
                        unit="s",
                        least=0,
                    ),
                ),
            ),
        ),
        variables(table),
        changes(table),
        dashboard_links(),
        refresh="10s",
        span="now-3h",
    )
