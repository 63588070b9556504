"""Real labelled data through the whole product: send → scorer → monitor, against the records and `score-file`."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from consumer.record import decode_record
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.integration.test_faults import METRIC, distinct_records, environment, gauge, weighted_mean, worker
from tests.processes import wait_until
from tests.services import SHARED

LABELLED = SHARED / "data" / "labelled"
SETS = {"ragtruth_qa_part": 60, "mtrag_part": 30, "rgb_pairs": 40}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not LABELLED.exists(), reason="../shared/data is absent: no labelled data to score"),
]


def groundwatch(values: dict[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "consumer", *arguments],
        env=os.environ | values, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_gauge_equals_the_records_and_the_file(kafka: str, tmp_path: Path) -> None:
    """Field case 34: another batch composition moves a score by noise only, so the means agree to 1e-4."""
    events = tmp_path / "events.jsonl"
    with events.open("wb") as out:
        for name, rows in SETS.items():
            with gzip.open(LABELLED / f"{name}.jsonl.gz") as lines:
                for _, line in zip(range(rows), lines, strict=False):
                    row = orjson.loads(line)
                    out.write(orjson.dumps(row | {"id": f"{name}/{row['id']}"}) + b"\n")
    total = sum(1 for _ in events.open("rb"))
    values = environment(kafka) | {"GROUNDWATCH__SAMPLING__RATE": "1.0", "GROUNDWATCH__SAMPLING__ALWAYS": "[]"}
    settings = load(None, values).settings
    create_topics(settings, 30)
    with ExitStack() as stack:
        monitor = worker(stack, "monitor", values, tmp_path)
        worker(stack, "score", values, tmp_path)
        groundwatch(values, "send", str(events))
        wait_until(lambda: len(distinct_records(settings)) == total, 280, f"{total} records")
        records = distinct_records(settings)
        scored = sum(METRIC in record.scores for record in records.values())
        assert scored > 0.9 * total
        wait_until(lambda: gauge(monitor, "rolling_samples") == scored, 30, f"{scored} counted")
        assert abs(gauge(monitor, "rolling_score") - weighted_mean(records)) < 1e-9
        in_stream = gauge(monitor, "rolling_score")
    scores = tmp_path / "scores.jsonl"
    groundwatch(values, "score-file", str(events), "--out", str(scores))
    from_file = {r.id: r for r in map(decode_record, scores.read_bytes().splitlines())}
    assert abs(in_stream - weighted_mean(from_file)) < 1e-4
