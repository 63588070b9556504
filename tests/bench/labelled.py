"""The labelled sets through the whole product: `send` → scorer → monitor on a real Kafka, and `score-file` beside it.

    python -m tests.bench.labelled [--rows 100] [--folder DIR]

Every set of ../shared/data that has answers and contexts, whole, or its first `--rows` rows. Fails where a gauge is not
the weighted mean of the distinct records to 1e-9, or that mean is further than 1e-4 from that of `score-file` over the
same events. Both sides start with an empty cache of their own; the file is scored in input order, the topic in that of
its partitions, so that the batches differ. The whole sets take an hour or two on two cores.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson

from consumer.embedded import embedded_redis
from consumer.record import ScoreRecord, decode_record
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.integration.test_faults import distinct_records, environment, worker
from tests.processes import Running, wait_until
from tests.services import SHARED, kafka_cluster

LABELLED = SHARED / "data" / "labelled"
SETS = (
    "attributionbench", "lfqa_sentences", "lfqa_responses", "wice_claims", "begin_v2", "faithdial_audit", "q2_wow",
    "qags", "gofigure", "falke_rank19", "summeval", "rgb_pairs", "ragtruth_qa_part", "mtrag_part", "expertqa_part",
    "summedits_part",
)  # fmt: skip
HOURS = 4 * 3600.0
TO_RECORDS = 1e-9
TO_FILE = 1e-4


def write_events(path: Path, rows: int | None) -> int:
    """The rows of all sets as events; ids are made distinct over sets. Returns how many."""
    written = 0
    with path.open("wb") as out:
        for name in SETS:
            with gzip.open(LABELLED / f"{name}.jsonl.gz") as lines:
                for number, line in enumerate(itertools.islice(lines, rows)):
                    out.write(orjson.dumps(orjson.loads(line) | {"id": f"{name}/{number}"}) + b"\n")
                    written += 1
    return written


def means(records: Iterable[ScoreRecord]) -> dict[str, tuple[float, int]]:
    """Per metric the weighted mean and the number of its values."""
    values: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        for metric, score in record.scores.items():
            values.setdefault(metric, []).append((score.value, score.probability))
    return {
        metric: (math.fsum(v / p for v, p in found) / math.fsum(1 / p for _, p in found), len(found))
        for metric, found in values.items()
    }


def gauges(monitor: Running, name: str) -> dict[str, float]:
    """The gauge of every metric over all segments in the longest window."""
    return {
        labels["metric"]: value
        for labels, value in monitor.samples().get(f"groundwatch_{name}", [])
        if labels["window"] == "24h" and labels["app"] == "all"
    }


def groundwatch(values: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "consumer", *arguments], env=os.environ | values, check=True)


def compare(in_gauges: dict[str, float], stream: Iterable[ScoreRecord], file: Iterable[ScoreRecord]) -> Iterator[str]:
    """One line a metric; a line that begins with `FAIL` is outside its bound."""
    by_file = means(file)
    for metric, (mean, count) in sorted(means(stream).items()):
        of_gauge = abs(in_gauges.get(metric, math.nan) - mean)
        of_file = abs(by_file.get(metric, (math.nan, 0))[0] - mean)
        good = of_gauge < TO_RECORDS and of_file < TO_FILE and by_file[metric][1] == count
        yield (f"{'ok  ' if good else 'FAIL'} {metric}: {mean:.6f} over {count:,} records; gauge {of_gauge:.1e} off, "
               f"score-file {of_file:.1e} off over {by_file.get(metric, (0.0, 0))[1]:,}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    if not LABELLED.exists():
        sys.exit(f"{LABELLED} is absent: no labelled data to score")
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(kafka_cluster(folder / "k"))
        values = environment(cluster.bootstrap) | {
            "GROUNDWATCH__SAMPLING__RATE": "1.0",
            "GROUNDWATCH__SAMPLING__ALWAYS": "[]",
            # Nothing is shed: the scorer may take as long as it takes.
            "GROUNDWATCH__SCORER__MAX_DELAY_SECONDS": str(HOURS),
        }
        events = folder / "events.jsonl"
        total = write_events(events, options.rows)
        settings = load(None, values).settings
        create_topics(settings, 30)
        started = time.monotonic()
        with embedded_redis(folder / "redis-stream.log") as url, ExitStack() as workers:
            values["GROUNDWATCH__REDIS__CACHE_URL"] = url
            monitor = worker(workers, "monitor", values, folder)
            scorer = worker(workers, "score", values, folder)
            wait_until(lambda: scorer.total("groundwatch_build_info") > 0, 120, "scorer up")
            groundwatch(values, "send", str(events))
            counted = f"{total:,} events accounted for"
            wait_until(lambda: scorer.total("groundwatch_events_total") >= total, HOURS, counted)

            def finished() -> float:
                dead = scorer.total("groundwatch_events_total", outcome="dead_lettered")
                return len(distinct_records(settings)) + dead

            # A rebalance on the way makes the scorer count some events twice.
            wait_until(lambda: finished() >= total, HOURS, counted)
            records = distinct_records(settings)
            wanted = {metric: float(count) for metric, (_, count) in means(records.values()).items()}
            wait_until(lambda: gauges(monitor, "rolling_samples") == wanted, 60, f"gauges over {wanted}")
            in_gauges = gauges(monitor, "rolling_score")
        print(f"{total:,} events of {len(SETS)} sets, {len(records):,} records, "
              f"{time.monotonic() - started:.0f} s", flush=True)  # fmt: skip
        scores = folder / "scores.jsonl"
        with embedded_redis(folder / "redis-file.log") as url:
            groundwatch(
                values | {"GROUNDWATCH__REDIS__CACHE_URL": url}, "score-file", str(events), "--out", str(scores)
            )
        lines = list(compare(in_gauges, records.values(), map(decode_record, scores.read_bytes().splitlines())))
    print("\n".join(lines))
    if any(line.startswith("FAIL") for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
