"""Series for promtool: what a Prometheus would have scraped, written down for one story."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.prometheus.alert import PREFIX
from deploy.prometheus.table import span

Labels = Mapping[str, str]
Series = tuple[str, str]
"""A series and its values in promtool's notation."""


@dataclass(frozen=True, slots=True)
class Check:
    """A query `at` so many seconds and the samples that it must give: (labels as written in PromQL, value)."""

    expr: str
    at: float
    samples: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story, and which alerts fire at its end (`fires`: their labels beyond name and severity).

    `alert`: whose story it is; `step`: seconds between samples and between evaluations; `exact`: the condition holds
    without a break once it does, so that `for` can be checked to the step.
    """

    alert: str
    title: str
    series: Sequence[Series]
    at: float
    fires: Sequence[Labels] = ()
    step: float = 60.0
    exact: bool = False
    checks: Sequence[Check] = field(default_factory=tuple)


def series(name: str, labels: Labels, values: str) -> Series:
    return f"{name}{{{_written(labels)}}}", values


def level(value: float, steps: int) -> str:
    """The same value at every step."""
    return f"{value:.12g}+0x{steps}" if math.isfinite(value) else " ".join(["NaN"] * (steps + 1))


def growing(by: float, steps: int, start: float = 0.0) -> str:
    """A counter that grows by so much a step."""
    return f"{start:.12g}+{by:.12g}x{steps}"


def then(*parts: str) -> str:
    """One after the other."""
    return " ".join(parts)


def missing(steps: int) -> str:
    """Scrapes that failed, one after the other, without the target being known as gone."""
    return f"_x{steps}"


GONE = "stale"
"""The target answered no more, and Prometheus noted that."""


def as_test(scenario: Scenario, severity: str, for_seconds: float) -> dict[str, Any]:
    """The scenario as promtool reads it. Alerts are checked as the series ALERTS, which carry every label."""
    name = PREFIX + scenario.alert
    firing = [
        {"labels": f"ALERTS{{{_written(_alert_labels(name, severity) | dict(labels))}}}", "value": 1}
        for labels in scenario.fires
    ]
    tests: list[dict[str, Any]] = [
        {
            "expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}',
            "eval_time": span(scenario.at),
            "exp_samples": firing,
        }
    ]
    if scenario.exact and scenario.fires:
        # Pending for exactly so many evaluations: a `for` of another length is another number.
        pending = (
            f'count_over_time(ALERTS{{alertname="{name}",alertstate="pending"}}[{span(scenario.at + scenario.step)}])'
        )
        expected = [{"labels": "{}", "value": for_seconds / scenario.step}] if for_seconds else []
        tests.append({"expr": f"max({pending})", "eval_time": span(scenario.at), "exp_samples": expected})
    for check in scenario.checks:
        samples = [{"labels": labels, "value": value} for labels, value in check.samples]
        tests.append({"expr": check.expr, "eval_time": span(check.at), "exp_samples": samples})
    return {
        "name": f"{scenario.alert}: {scenario.title}",
        "interval": span(scenario.step),
        "input_series": [{"series": name, "values": values} for name, values in scenario.series],
        "promql_expr_test": tests,
    }


def _alert_labels(name: str, severity: str) -> dict[str, str]:
    return {"alertname": name, "alertstate": "firing", "severity": severity, "service": "groundwatch"}


def _written(labels: Labels) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())
