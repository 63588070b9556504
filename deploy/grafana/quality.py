"""Quality: are answers grounded in what was retrieved?"""

from __future__ import annotations

from deploy.grafana.panel import Dashboard, Link, Panel, Query
from deploy.grafana.parts import (
    BASELINES,
    JUDGED,
    LABELS,
    cases,
    changes,
    dashboard_links,
    score,
    selector,
    variables,
)
from deploy.prometheus.table import Table


def quality(table: Table) -> Dashboard:
    every, each = selector(table), selector(table, every=False)
    by = ", ".join(table.segments)
    named = " / ".join(f"{{{{{name}}}}}" for name in table.segments)
    labels = ("metric", "window", *table.segments)
    compared = f'window="$window",{table.segments[0]}!="all"'
    observed = f'groundwatch_score_bucket{{metric="faithfulness",{each}}}'
    baseline, previous = (f'{{reference="{name}",window="$window",{every}}}' for name in ("baseline", "previous"))
    complete = table.settings.monitor.coverage_minimum
    return Dashboard(
        "groundwatch-quality",
        "Groundwatch: Quality",
        "Are answers grounded in what was retrieved? Bands are 95 % intervals; dashed lines are thresholds in force.",
        (
            (
                "Scores",
                (
                    score(table, "faithfulness", "Faithfulness", "Share of statements that the passages support."),
                    score(
                        table,
                        "faithful_probability",
                        "Faithful answers, by the judge's own probability",
                        "Mean calibrated probability that an answer is faithful; by the lexical or the local judge.",
                    ),
                    score(
                        table,
                        "topic_similarity",
                        "Topic similarity",
                        "Cosine of answer and passages. Watched for shifts; it says nothing about truth.",
                    ),
                    score(
                        table,
                        "question_context_similarity",
                        "Question and passages",
                        "Low: retrieval returns something else than was asked for.",
                    ),
                    score(
                        table,
                        "question_answer_similarity",
                        "Question and answer",
                        "Low: the answer is about something else than the question.",
                    ),
                    score(table, "answer_relevance", "Answer relevance", "By an LLM judge.", JUDGED),
                    Panel(
                        "Context precision and recall",
                        "timeseries",
                        tuple(
                            Query(
                                f'groundwatch:rolling_score:newest{{metric="{metric}",window="$window",{every}}}',
                                f"{{{{metric}}}} {named}",
                                labels,
                                pending=JUDGED,
                            )
                            for metric in ("context_precision", "context_recall")
                        ),
                        "Always read together: either alone is easy to have. Only for events with a reference answer.",
                        unit="percentunit",
                    ),
                    Panel(
                        "Good answers, as people see them",
                        "timeseries",
                        tuple(
                            Query(
                                f"max by ({', '.join(labels)}) (groundwatch_rolling_score_corrected{end}"
                                f'{{window="$window",{every}}})',
                                f"{legend}{{{{metric}}}} {named}",
                                labels,
                                pending=LABELS,
                            )
                            for end, legend in (("", ""), ("_low", "low "), ("_high", "high "))
                        ),
                        "The score, corrected by people's labels of audited answers; the band is a 95 % interval.",
                        unit="percentunit",
                        bands=("low", "high"),
                    ),
                ),
            ),
            (
                "How much it rests on",
                (
                    Panel(
                        "Samples in the window",
                        "timeseries",
                        (
                            Query(
                                f'groundwatch:rolling_samples:newest{{window="$window",{every}}}',
                                f"{{{{metric}}}} {named}",
                                labels,
                            ),
                        ),
                        "A score of few samples is no reason to act.",
                        least=0,
                    ),
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
                        f"Scored / (scored + failed). Below {complete:g} the score is degraded.",
                        unit="percentunit",
                        most=1,
                    ),
                ),
            ),
            (
                "What is in the answers",
                (
                    Panel(
                        "Statements by verdict",
                        "timeseries",
                        (
                            Query(
                                f"sum by (verdict) (rate(groundwatch_statements_total{{{each}}}[$__rate_interval]))",
                                "{{verdict}}",
                                ("verdict",),
                            ),
                        ),
                        "Statements a second of the scored answers.",
                        unit="cps",
                        stacked=True,
                    ),
                    Panel(
                        "Flagged answers",
                        "timeseries",
                        (
                            Query(f"groundwatch:flagged_answers:ratio1h{{{every}}}", named, table.segments),
                            Query(f"vector({1 - table.target:.4g})", "budget"),
                        ),
                        "Weighted share of the last hour; the dashed line is what the objective allows.",
                        unit="percentunit",
                        least=0,
                        dashed=("budget",),
                        links=(Link("Cases", cases(table, "")),),
                    ),
                    Panel(
                        "Refusals",
                        "timeseries",
                        (
                            Query(
                                f'max by ({by}) (groundwatch_rolling_refusal_ratio{{window="$window",{every}}})',
                                named,
                                table.segments,
                            ),
                        ),
                        "They make no claim, so they have no faithfulness.",
                        unit="percentunit",
                        least=0,
                    ),
                    Panel(
                        "Faithfulness of single answers",
                        "heatmap",
                        (
                            Query(
                                f"sum by (le) (increase({observed}[$__rate_interval]))",
                                "{{le}}",
                                ("le",),
                                exemplar=True,
                            ),
                        ),
                        "The points are exemplars: each leads to its case file.",
                        unit="percentunit",
                    ),
                ),
            ),
            (
                "Drift",
                (
                    Panel(
                        "Distance to the baseline",
                        "timeseries",
                        (
                            Query(
                                f"max by (metric, statistic, {by}) (groundwatch_drift{baseline})",
                                f"{{{{metric}}}} {{{{statistic}}}} {named}",
                                ("metric", "statistic"),
                                pending=BASELINES,
                            ),
                            Query(
                                f"max by (metric, statistic, {by}) (groundwatch_drift_null_high{baseline})",
                                f"chance {{{{metric}}}} {{{{statistic}}}} {named}",
                                ("metric", "statistic"),
                                pending=BASELINES,
                            ),
                        ),
                        "Dashed: what it stays under at this number of samples without drift.",
                        dashed=("chance",),
                    ),
                    Panel(
                        "Distance to the period before",
                        "timeseries",
                        (
                            Query(
                                f"max by (metric, statistic, {by}) (groundwatch_drift{previous})",
                                f"{{{{metric}}}} {{{{statistic}}}} {named}",
                                ("metric", "statistic"),
                                pending=BASELINES,
                            ),
                        ),
                        "Of questions and passages too: users ask about something new, or answers got worse?",
                    ),
                ),
            ),
            (
                "Segments compared",
                (
                    Panel(
                        "Faithfulness now",
                        "bargauge",
                        (
                            Query(
                                f'groundwatch:rolling_score:newest{{metric="faithfulness",{compared}}}',
                                named,
                                labels,
                                instant=True,
                            ),
                        ),
                        unit="percentunit",
                        least=0,
                        most=1,
                        limits=((None, "red"), (0.75, "orange"), (0.8, "green")),
                        links=(Link("Cases", cases(table, "")),),
                    ),
                    Panel(
                        "Flagged now",
                        "bargauge",
                        (
                            Query(
                                f'groundwatch:flagged_answers:ratio1h{{{table.segments[0]}!="all"}}',
                                named,
                                table.segments,
                                instant=True,
                            ),
                        ),
                        unit="percentunit",
                        least=0,
                        limits=((None, "green"), (1 - table.target, "orange"), (0.2, "red")),
                        links=(Link("Cases", cases(table, "")),),
                    ),
                ),
            ),
        ),
        variables(table),
        changes(table),
        dashboard_links(),
    )
