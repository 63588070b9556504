"""The rule file as data: recording rules, then alerts, from one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deploy.prometheus.alert import Alert, annotations_of, labels_of
from deploy.prometheus.recording import Recording, Recordings
from deploy.prometheus.score_alerts import score_alerts
from deploy.prometheus.table import Table, TableError, span
from deploy.prometheus.worker_alerts import worker_alerts


def build(table: Table) -> tuple[list[Recording], list[Alert]]:
    """Recording rules and alerts.

    Raises:
        TableError: the table has a row that no alert uses, or lacks one.
    """
    recordings = Recordings(table)
    alerts = [*score_alerts(table, recordings), *worker_alerts(table, recordings)]
    unused = set(table.rows) - {alert.name for alert in alerts}
    if unused:
        raise TableError(f"no alert is called {', '.join(sorted(unused))}")
    for alert in alerts:
        table.row(alert.name).check_all_asked()
    return recordings.listed(), alerts


def rule_file(table: Table, recordings: Sequence[Recording], alerts: Sequence[Alert]) -> dict[str, Any]:
    """The rule file. Both groups are evaluated in order, so an alert sees what was recorded in the same round."""
    recorded = [{"record": rule.name, "expr": rule.expr} for rule in recordings]
    alerting = [rule_of(alert, table) for alert in alerts]
    interval = span(table.interval)
    return {"groups": [{"name": "groundwatch", "interval": interval, "rules": [*recorded, *alerting]}]}


def rule_of(alert: Alert, table: Table) -> dict[str, Any]:
    held = {"for": span(alert.for_seconds)} if alert.for_seconds else {}
    return {
        "alert": alert.full_name,
        "expr": alert.expr(),
        **held,
        "labels": labels_of(alert),
        "annotations": annotations_of(alert, table.links, table.segments),
    }
