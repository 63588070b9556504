"""Every query of every panel, asked of a real Prometheus that scrapes real workers: it answers with its labels."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.script import Fault
from consumer.settings import Scoring
from deploy.grafana.boards import dashboards
from deploy.grafana.panel import Dashboard, Query, expanded
from deploy.grafana.parts import BASELINES, JUDGED, LABELS
from tests.alerting_stack import CACHE_OPTIONS, Stack, redis, stack
from tests.integration.scorer_harness import produce
from tests.processes import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

PENDING = {JUDGED, BASELINES, LABELS}
"""What this stack does not have. Queries that need it must be valid here, and answer in test_dashboards_judged.py."""
THRESHOLDS = {"faithfulness": 0.75, "faithful_probability": 0.5} | dict.fromkeys(
    ("topic_similarity", "question_context_similarity", "question_answer_similarity"), 0.3
)
QUIET = {
    "Operations: Commits and rebalances",
    "On-call: Alerts",
    "Quality: annotation model or knowledge base",
    "Quality: annotation change of a score",
    "On-call: annotation change of a score",
}
"""What may have nothing to show in calm traffic."""


@pytest.fixture(scope="module")
def running(kafka: str, alerting_binaries: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("dashboards")
    tag = uuid.uuid4().hex[:8]
    with (
        redis(folder, *CACHE_OPTIONS) as cache,
        redis(folder) as cases,
        stack(
            folder,
            kafka,
            alerting_binaries,
            tag,
            cache_url=cache.url,
            cases_url=cases.url,
            rate=3.0,
            metrics=Scoring().metrics,
            thresholds={"default": THRESHOLDS},
        ) as running,
    ):
        produce(kafka, f"events-{tag}", [b"not json", b'{"question": "?", "contexts": []}'])
        time.sleep(15)
        # Flags, faults and a new knowledge base have something to show.
        running.traffic.fault = Fault.OLD_KNOWLEDGE
        wait_until(
            lambda: bool(running.prometheus.query("sum(increase(groundwatch_flagged_total[30s])) > 3")), 90, "flags"
        )
        there = "count(groundwatch:flagged_answers:ratio1h) and count(groundwatch_case_lag_records)"
        wait_until(lambda: bool(running.prometheus.query(there)), 60, "recorded ratios, and the lag of case files")
        yield running


def variables(dashboard: Dashboard) -> dict[str, str]:
    """The first choice of each variable, and everything where that is offered."""
    chosen = {}
    for variable in dashboard.variables:
        chosen[variable.name] = ".*" if variable.multi else variable.current
    return chosen


def test_every_query_answers_with_its_labels(running: Stack) -> None:
    assert faults_of(running, lambda name, query: not query.pending and name not in QUIET) == []


def faults_of(running: Stack, must_answer: Callable[[str, Query], bool]) -> list[str]:
    """What is wrong with the answers to the queries of all dashboards; one that is not valid raises."""
    faults = []
    for dashboard in dashboards(running.table):
        for title, query in dashboard.queries():
            name = f"{dashboard.title.removeprefix('Groundwatch: ')}: {title}"
            expr = expanded(query.expr, variables(dashboard), "30s")
            found = running.prometheus.query(expr)
            if not found and must_answer(name, query):
                faults.append(f"{name}: nothing for {expr}")
            for labels, value in found:
                if not set(query.labels) <= set(labels):
                    faults.append(f"{name}: {sorted(labels)} lacks {sorted(set(query.labels) - set(labels))}")
                if value != value:
                    faults.append(f"{name}: NaN for {labels}")
    return faults


def test_what_is_pending_is_named() -> None:
    from consumer.settings import Settings
    from deploy.prometheus.table import read_table

    waiting = [query for d in dashboards(read_table(Settings())) for _, query in d.queries() if query.pending]
    assert {query.pending for query in waiting} == PENDING


def test_variables_have_values(running: Stack) -> None:
    for name in running.table.segments:
        values = running.prometheus.ask(f"/api/v1/label/{name}/values", **{"match[]": "groundwatch_rolling_samples"})
        assert "all" in values
        assert len(values) >= 3


def test_exemplars_lead_to_answers(running: Stack) -> None:
    def exemplars(query: Query) -> list[dict[str, Any]]:
        now = time.time()
        expr = expanded(query.expr, {"app": ".*", "lang": ".*", "window": "1h"}, "30s")
        answer: list[dict[str, Any]] = running.prometheus.ask(
            "/api/v1/query_exemplars", query=expr, start=str(now - 300), end=str(now)
        )
        return answer

    asked = [query for d in dashboards(running.table) for _, query in d.queries() if query.exemplar]
    assert len(asked) >= 2
    for query in asked:
        found = [one for series in exemplars(query) for one in series["exemplars"]]
        assert found, query.expr
        assert all(set(one["labels"]) <= {"trace_id", "event_id"} for one in found)


def test_the_committed_dashboards_are_the_same_queries(running: Stack) -> None:
    """Only addresses and windows differ from what this test asked."""
    folder = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards"
    for dashboard in dashboards(running.table):
        written = json.loads((folder / f"{dashboard.uid}.json").read_text(encoding="utf-8"))
        asked = [target["expr"] for panel in written["panels"] for target in panel.get("targets", [])]
        assert asked == [query.expr for title, query in dashboard.queries() if not title.startswith("annotation")]
