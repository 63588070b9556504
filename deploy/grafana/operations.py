"""Operations: do the workers keep up, and with what?"""

from __future__ import annotations

from deploy.grafana.panel import Dashboard, Panel, Query
from deploy.grafana.parts import JUDGED, dashboard_links, variables
from deploy.prometheus.table import Table


def _rate(counter: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate(groundwatch_{counter}{{{more}}}[$__rate_interval]))"


def _quantile(q: float, histogram: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate(groundwatch_{histogram}_bucket[$__rate_interval])))"


def operations(table: Table) -> Dashboard:
    jobs = f'job=~"{table.scorer_job}|{table.monitor_job}"'
    return Dashboard(
        "groundwatch-operations",
        "Groundwatch: Operations",
        "Do the workers keep up, and with what?",
        (
            (
                "Events",
                (
                    Panel(
                        "Events by outcome",
                        "timeseries",
                        (Query(_rate("events_total", "outcome"), "{{outcome}}", ("outcome",)),),
                        unit="eps",
                        stacked=True,
                        least=0,
                    ),
                    Panel(
                        "Events in",
                        "timeseries",
                        (Query(_rate("events_in_total", "topic"), "{{topic}}", ("topic",)),),
                        unit="eps",
                        least=0,
                    ),
                    Panel(
                        "Lag",
                        "timeseries",
                        (
                            Query("sum by (topic) (groundwatch_lag_events)", "{{topic}}", ("topic",)),
                            Query(
                                "sum by (topic) (groundwatch_monitor_lag_records)", "{{topic}} (monitor)", ("topic",)
                            ),
                        ),
                        "Events, and score records, that wait.",
                        least=0,
                    ),
                    Panel(
                        "Age of events when scored",
                        "timeseries",
                        (
                            Query(_quantile(0.5, "event_age_seconds"), "half"),
                            Query(_quantile(0.95, "event_age_seconds"), "95 %"),
                        ),
                        unit="s",
                        least=0,
                    ),
                    Panel(
                        "Time since the committed offset moved",
                        "timeseries",
                        (
                            Query(
                                "max by (topic, partition) (time() - groundwatch_progress_timestamp_seconds)",
                                "{{topic}} {{partition}}",
                                ("topic", "partition"),
                            ),
                        ),
                        unit="s",
                        least=0,
                    ),
                    Panel(
                        "Back-pressure",
                        "timeseries",
                        (
                            Query("sum(groundwatch_inflight_events)", "in flight"),
                            Query("sum(groundwatch_paused_partitions)", "paused partitions"),
                            Query("min(groundwatch_admitted_share)", "admitted share"),
                        ),
                        least=0,
                    ),
                ),
            ),
            (
                "Scores",
                (
                    Panel(
                        "Without a score, by reason",
                        "timeseries",
                        (
                            Query(
                                _rate("unscored_total", "metric, reason") + " > 0",
                                "{{metric}} {{reason}}",
                                ("metric", "reason"),
                            ),
                        ),
                        unit="eps",
                        least=0,
                    ),
                    Panel(
                        "Score records read",
                        "timeseries",
                        (Query(_rate("scores_read_total", "outcome"), "{{outcome}}", ("outcome",)),),
                        unit="eps",
                        least=0,
                    ),
                    Panel(
                        "Time of a batch",
                        "timeseries",
                        (
                            Query(_quantile(0.5, "batch_seconds"), "half"),
                            Query(_quantile(0.95, "batch_seconds"), "95 %"),
                        ),
                        unit="s",
                        least=0,
                    ),
                    Panel(
                        "Monitors",
                        "timeseries",
                        (
                            Query("sum(groundwatch_monitor_active)", "active"),
                            Query("min(groundwatch_rebuild_complete)", "read back"),
                            Query("min(groundwatch_window_filled_ratio)", "least filled window"),
                        ),
                        least=0,
                    ),
                ),
            ),
            (
                "Judge",
                (
                    Panel(
                        "Requests by outcome",
                        "timeseries",
                        (
                            Query(
                                _rate("judge_requests_total", "judge, outcome"),
                                "{{judge}} {{outcome}}",
                                ("judge", "outcome"),
                                pending=JUDGED,
                            ),
                        ),
                        unit="reqps",
                        least=0,
                    ),
                    Panel(
                        "Latency",
                        "timeseries",
                        (
                            Query(
                                _quantile(0.5, "judge_seconds", "judge"), "half {{judge}}", ("judge",), pending=JUDGED
                            ),
                            Query(
                                _quantile(0.95, "judge_seconds", "judge"), "95 % {{judge}}", ("judge",), pending=JUDGED
                            ),
                        ),
                        unit="s",
                        least=0,
                    ),
                    Panel(
                        "Tokens",
                        "timeseries",
                        (
                            Query(
                                _rate("judge_tokens_total", "judge, kind"),
                                "{{judge}} {{kind}}",
                                ("judge", "kind"),
                                pending=JUDGED,
                            ),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Cost a day",
                        "timeseries",
                        (
                            Query(
                                _rate("judge_cost_total", "judge") + " * 86400",
                                "{{judge}}",
                                ("judge",),
                                pending=JUDGED,
                            ),
                        ),
                        "Tokens at `judge.prompt_price` and `judge.completion_price`, in the currency of these.",
                        least=0,
                    ),
                ),
            ),
            (
                "What it leans on",
                (
                    Panel(
                        "Cache, by result",
                        "timeseries",
                        (
                            Query(
                                _rate("cache_requests_total", "cache, result") + " > 0",
                                "{{cache}} {{result}}",
                                ("cache", "result"),
                            ),
                        ),
                        unit="reqps",
                        least=0,
                    ),
                    Panel(
                        "Texts embedded",
                        "timeseries",
                        (Query(_rate("embedded_texts_total", "kind"), "{{kind}}", ("kind",)),),
                        least=0,
                    ),
                    Panel(
                        "Case files",
                        "timeseries",
                        (
                            Query("max(groundwatch_cases_stored)", "stored"),
                            Query("sum(groundwatch_case_lag_records)", "waiting"),
                            Query("max(groundwatch_case_store_up)", "store is up"),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Dead letters by reason",
                        "timeseries",
                        (
                            Query(
                                "sum by (reason) (increase(groundwatch_deadletters_total[$__rate_interval])) > 0",
                                "{{reason}}",
                                ("reason",),
                            ),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Repairs and refused outputs",
                        "timeseries",
                        (
                            Query(_rate("input_repairs_total", "kind"), "repaired {{kind}}", ("kind",)),
                            Query(_rate("output_refused_total", "topic"), "refused {{topic}}", ("topic",)),
                        ),
                        least=0,
                    ),
                    Panel(
                        "Commits and rebalances",
                        "timeseries",
                        (
                            Query("sum(increase(groundwatch_commit_errors_total[$__rate_interval]))", "commit errors"),
                            Query(
                                "sum by (kind) (increase(groundwatch_rebalances_total[$__rate_interval]))",
                                "{{kind}}",
                                ("kind",),
                            ),
                        ),
                        least=0,
                    ),
                ),
            ),
            (
                "Processes",
                (
                    Panel(
                        "Memory",
                        "timeseries",
                        (
                            Query(
                                f"process_resident_memory_bytes{{{jobs}}}", "{{job}} {{instance}}", ("job", "instance")
                            ),
                        ),
                        unit="bytes",
                        least=0,
                    ),
                    Panel(
                        "Processor",
                        "timeseries",
                        (
                            Query(
                                f"rate(process_cpu_seconds_total{{{jobs}}}[$__rate_interval])",
                                "{{job}} {{instance}}",
                                ("job", "instance"),
                            ),
                        ),
                        "Cores in use.",
                        least=0,
                    ),
                    Panel(
                        "Up",
                        "stat",
                        (Query(f"sum by (job) (up{{{jobs}}})", "{{job}}", ("job",)),),
                        limits=((None, "red"), (1.0, "green")),
                    ),
                    Panel(
                        "Versions and definitions",
                        "table",
                        (Query("groundwatch_definition_info", labels=("metric", "definition"), instant=True),),
                        "Two of one metric: a rollout.",
                    ),
                ),
            ),
        ),
        variables(table, segments=False),
        (),
        dashboard_links(),
    )
