"""One alert: conditions that become one expression, and what it tells people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.prometheus.table import Links, span

PREFIX = "Groundwatch"

# The value of an alert, in templates.
SHARE = "{{ $value | humanizePercentage }}"
NUMBER = '{{ $value | printf "%.0f" }}'
SCORE = '{{ $value | printf "%.3f" }}'
TIME = "{{ $value | humanizeDuration }}"


@dataclass(frozen=True, slots=True)
class Alert:
    """`lead` gives the value and the labels; every other condition must hold for the same `keys`, as must every guard
    (a guard says whether there is enough to judge by).

    `hold_seconds`: an alert that fires goes on for so long where the guards no longer hold, that is, where its data
    ended; 0: it ends at once. `case_query`: what to show in the list of cases.
    """

    name: str
    lead: str
    keys: tuple[str, ...]
    severity: str
    for_seconds: float
    summary: str
    description: str
    dashboard: str = "oncall"
    conditions: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    hold_seconds: float = 0.0
    case_query: str = ""

    @property
    def full_name(self) -> str:
        return PREFIX + self.name

    def expr(self) -> str:
        on = f"on ({', '.join(self.keys)})"
        parts = [self.lead, *(f"and {on} ({condition})" for condition in (*self.conditions, *self.guards))]
        expr = "\n".join(parts)
        if not self.hold_seconds:
            return expr
        known = f" and {on} ".join(f"({guard})" for guard in self.guards)
        # Silence is no recovery: without enough data the last value stands, and the alert that fires goes on firing.
        held = (
            f"last_over_time({_series(self.lead)}[{span(self.hold_seconds)}])\n"
            f'and {on} ALERTS{{alertname="{self.full_name}", alertstate="firing"}}\nunless {on} ({known})'
        )
        return f"{expr}\nor\n{held}"


def _series(lead: str) -> str:
    """The series of a lead such as `name{...} < 0.5`."""
    return lead.split("}")[0] + "}"


def label(name: str) -> str:
    """A label of the alert, in a template."""
    return f"{{{{ $labels.{name} }}}}"


def labels_of(alert: Alert) -> dict[str, str]:
    """Labels that never change with a value: `for` counts on them, and so does whoever groups and silences."""
    return {"service": "groundwatch", "severity": alert.severity}


def annotations_of(alert: Alert, links: Links, segments: Sequence[str]) -> dict[str, str]:
    """Summary, description and links. Values stand here only, never in a label."""
    named = [name for name in segments if name in alert.keys]
    variables = "".join(f"&var-{name}={{{{ $labels.{name} | urlquery }}}}" for name in named)
    found = {
        "summary": alert.summary,
        "description": alert.description,
        "dashboard": f"{links.grafana}/d/groundwatch-{alert.dashboard}?from=now-6h&to=now{variables}",
        "runbook_url": f"{links.runbooks}/{alert.full_name}.md",
    }
    if alert.case_query:
        conditions = ",".join(f"{name}=%s" for name in named)
        values = " ".join(f"$labels.{name}" for name in named)
        segment = f'segment={{{{ printf "{conditions}" {values} | urlquery }}}}&' if named else ""
        if named:  # `all` is the sum over segments, not one of them
            segment = f'{{{{ if ne $labels.{named[0]} "all" }}}}{segment}{{{{ end }}}}'
        found["cases"] = f"{links.pages}/cases?{segment}{alert.case_query}"
    return found
