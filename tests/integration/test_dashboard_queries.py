"""Every query of every panel is valid on every Prometheus there is; what it answers: test_dashboards.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumer.settings import Settings
from deploy.grafana.boards import dashboards
from deploy.grafana.panel import expanded
from deploy.prometheus.table import read_table
from tests.prometheus_server import prometheus


def test_every_query_is_valid(prometheus_binaries: list[str], tmp_path: Path) -> None:
    for number, binary in enumerate(prometheus_binaries):
        with prometheus(binary, tmp_path / str(number), {"global": {"scrape_interval": "1m"}}) as server:
            asked = 0
            for dashboard in dashboards(read_table(Settings())):
                chosen = {v.name: ".*" if v.multi else v.current for v in dashboard.variables}
                for _, query in dashboard.queries():
                    server.query(expanded(query.expr, chosen, "30s"))
                    asked += 1
            assert asked > 60
            with pytest.raises(AssertionError, match="parse error"):
                server.query("sum by (")
