"""Writes the rule file and its promtool tests: `python -m deploy.prometheus.generate [--settings FILE] [--out DIR]`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from consumer.finite import FiniteRange
from consumer.settings_source import SettingsError, load
from deploy.prometheus.alert import Alert
from deploy.prometheus.budget_scenarios import budget_scenarios
from deploy.prometheus.merging_scenarios import merging_scenarios
from deploy.prometheus.rules import build, rule_file
from deploy.prometheus.scenario import Scenario, as_test
from deploy.prometheus.score_scenarios import score_scenarios
from deploy.prometheus.table import TABLE, Table, TableError, read_table, span
from deploy.prometheus.worker_scenarios import worker_scenarios
from deploy.prometheus.written import as_yaml

HEADING = "Made from deploy/prometheus/alerts.toml: change that, then: python -m deploy.prometheus.generate"
RULES = "groundwatch.rules.yaml"
OPERATOR_RULES = "prometheusrule.yaml"
KUBERNETES = TABLE.parents[1] / "kubernetes"


def files(table: Table) -> dict[str, str]:
    """By name: the rule file and, where nothing is scaled, the tests of the rules.

    Raises:
        TableError: the table cannot be used.
    """
    recordings, alerts = build(table)
    made = {RULES: as_yaml(rule_file(table, recordings, alerts), HEADING)}
    if table.scale == 1.0:
        scenarios = [
            *score_scenarios(table),
            *budget_scenarios(table),
            *worker_scenarios(table),
            *merging_scenarios(table),
        ]
        for step in sorted({scenario.step for scenario in scenarios}):
            chosen = [scenario for scenario in scenarios if scenario.step == step]
            made[f"groundwatch.{span(step)}.tests.yaml"] = as_yaml(promtool_tests(chosen, alerts, RULES), HEADING)
    return made


def promtool_tests(scenarios: Iterable[Scenario], alerts: Iterable[Alert], rules: str) -> dict[str, Any]:
    """A promtool test file; all scenarios must have one step."""
    by_name = {alert.name: alert for alert in alerts}
    chosen = list(scenarios)
    (step,) = {scenario.step for scenario in chosen}
    tests = [as_test(s, by_name[s.alert].severity, by_name[s.alert].for_seconds) for s in chosen]
    return {"rule_files": [rules], "evaluation_interval": span(step), "tests": tests}


def operator_rules(table: Table) -> str:
    """The same rules as a resource of the Prometheus operator."""
    recordings, alerts = build(table)
    return as_yaml(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "groundwatch", "labels": {"release": "prometheus"}},
            "spec": rule_file(table, recordings, alerts),
        },
        HEADING,
    )


@click.command()
@click.option(
    "--settings", "file", type=click.Path(path_type=Path), help="Groundwatch settings (default: ./groundwatch.toml)."
)
@click.option("--table", "table_file", type=click.Path(path_type=Path, exists=True), default=TABLE, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=TABLE.parent, show_default=True)
@click.option("--grafana", help="Address of Grafana, for the links of alerts.")
@click.option("--pages", help="Address of the monitor's pages.")
@click.option("--runbooks", help="Address of the folder of runbooks.")
@click.option(
    "--scale",
    type=FiniteRange(min=1),
    default=1.0,
    show_default=True,
    help="Make all spans so much shorter (tests).",
)
def main(
    file: Path | None,
    table_file: Path,
    out: Path,
    grafana: str | None,
    pages: str | None,
    runbooks: str | None,
    scale: float,
) -> None:
    """Write recording rules, alerts and their promtool tests from the table and the settings."""
    try:
        settings = load(file, os.environ).settings
        table = read_table(settings, table_file, scale).linked(grafana=grafana, pages=pages, runbooks=runbooks)
        made = files(table)
    except SettingsError as error:
        raise click.UsageError(f"settings:\n{error}") from None
    except (TableError, OSError) as error:
        raise click.ClickException(str(error)) from None
    if scale == 1.0:
        made[OPERATOR_RULES] = operator_rules(table)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        folder = KUBERNETES if name == OPERATOR_RULES and out == TABLE.parent else out
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(folder / name)


if __name__ == "__main__":
    main()
