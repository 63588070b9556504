"""The queries that need an LLM judge, a baseline or labels, asked of a Prometheus over workers that have all three."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.demo.knowledge import load_documents
from tests.alerting_stack import CACHE_OPTIONS, Stack, environment, redis, stack
from tests.integration.judge_server import judge_server
from tests.integration.test_dashboards import PENDING, faults_of
from tests.processes import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

METRICS = (
    "faithfulness", "answer_relevance", "context_precision", "context_recall", "context_relevance", "topic_similarity",
)  # fmt: skip
LABELLED = 60
"""Answers that a person looked at; fifty are asked for."""


def groundwatch(own: Mapping[str, str], *arguments: object) -> str:
    """What the command says when all went well."""
    done = subprocess.run(
        [sys.executable, "-m", "consumer", *map(str, arguments)],
        env=os.environ | own, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def validated(file: Path) -> Path:
    """Right answers of the help desk, each with its document."""
    rows = [
        {
            "id": f"{document.id}-{number}", "question": asked.question, "contexts": [document.text],
            "ideal answer": asked.answer, "labels": {"app": document.app, "lang": document.lang},
        }
        for document in load_documents()
        for number, asked in enumerate(document.asked)
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def running(kafka: str, alerting_binaries: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("judged")
    tag = uuid.uuid4().hex[:8]
    baseline = folder / "baseline.json"
    with judge_server() as judge, redis(folder, *CACHE_OPTIONS) as cache, redis(folder) as cases:
        asked = {"judge": judge.settings(prompt_price=0.0005), "scoring": {"metrics": list(METRICS)}}
        groundwatch(
            environment(kafka, tag, **asked), "calibrate", validated(folder / "good.jsonl"), "--out", baseline,
        )  # fmt: skip
        with stack(
            folder, kafka, alerting_binaries, tag, cache_url=cache.url, cases_url=cases.url, rate=3.0, metrics=METRICS,
            judge=asked["judge"], baseline={"file": str(baseline)}, cases={"audit_share": 1.0},
        ) as running:  # fmt: skip
            running.traffic.logged = lambda event: replace(event, reference=event.answer or None)
            yield running


def labelled(running: Stack, folder: Path) -> None:
    """One answer in six is called bad."""
    audited = groundwatch(running.environment, "cases", "export", "--why", "audit").splitlines()
    ids = [json.loads(line)["id"] for line in audited[:LABELLED]]
    lines = [json.dumps({"id": id, "verdict": "good" if n % 6 else "bad"}) for n, id in enumerate(ids)]
    (folder / "labels.jsonl").write_text("\n".join(lines), encoding="utf-8")
    groundwatch(running.environment, "label", "import", folder / "labels.jsonl", "--by", "tester")


def test_every_query_that_waits_for_more_answers_once_it_is_there(running: Stack, tmp_path: Path) -> None:
    def counted(expr: str) -> bool:
        return bool(running.prometheus.query(expr))

    wait_until(lambda: running.monitor.total("groundwatch_cases_stored") > LABELLED, 120, "audited cases")
    labelled(running, tmp_path)
    wait_until(lambda: counted('groundwatch_rolling_score_corrected{window="1h"}'), 60, "the labels count")
    wait_until(lambda: counted('groundwatch_drift{reference="previous",window="1h"}'), 180, "there is a period before")
    assert faults_of(running, lambda name, query: query.pending in PENDING) == []
