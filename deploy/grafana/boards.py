"""The three dashboards. After a change: `python -m deploy.grafana.generate`."""

from __future__ import annotations

from deploy.grafana.oncall import on_call
from deploy.grafana.operations import operations
from deploy.grafana.panel import Dashboard
from deploy.grafana.quality import quality
from deploy.prometheus.table import Table


def dashboards(table: Table) -> tuple[Dashboard, ...]:
    """Quality, On-call, Operations."""
    return (quality(table), on_call(table), operations(table))
