"""The monitor on a real Kafka: reading 24 h back, memory, live rate, and how soon a record is in the gauge.

    python -m tests.bench.monitor [--records 1700000] [--rate 5000] [--live-seconds 60]

Prints one line a figure; exit code 1 where a target is missed. Targets: 1.7 million records in 20 segments read back
within 60 s; resident memory below 150 MB all the time; 5,000 records/s live.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.embedded import free_port
from consumer.record import MetricScore, Position, ScoreRecord, encode_record
from tests.processes import Running, groundwatch, wait_until
from tests.services import kafka_cluster

APPS = [f"app-{i}" for i in range(10)]
LANGS = ["en", "zh"]
METRICS = {
    "topic_similarity": "3fa9c1d2",
    "question_context_similarity": "3fa9c1d3",
    "question_answer_similarity": "3fa9c1d4",
}
TOPIC, GROUP = "qa.scores", "groundwatch-monitor"
ALL = {"app": "all", "lang": "all"}


@dataclass(slots=True)
class Sums:
    """Of topic similarity: Σ s/p and Σ 1/p."""

    weighted: float = 0.0
    weight: float = 0.0
    n: int = 0


class Records:
    """Score records as the scorer writes them (1.2 kB with sketches), from a fixed seed."""

    def __init__(self) -> None:
        self._random = random.Random(20261129)
        self._sketches = [base64.b64encode(self._random.randbytes(64)).decode() for _ in range(64)]
        self._number = 0
        self.sums = Sums()

    def next(self, event_time: float) -> bytes:
        rng, number = self._random, self._number
        self._number += 1
        probability = rng.choice((1.0, 0.2, 0.05))
        scores = {name: MetricScore(rng.betavariate(18, 3), probability) for name in METRICS}
        self.sums.weighted += scores["topic_similarity"].value / probability
        self.sums.weight += 1 / probability
        self.sums.n += 1
        return encode_record(
            ScoreRecord(
                id=f"evt-{number:08d}-{rng.getrandbits(64):016x}",
                content_hash=f"{rng.getrandbits(128):032x}",
                event_time=event_time,
                scored_time=event_time + 1,
                source=Position("qa.events", number % 6, number // 6),
                segment={"app": APPS[number % 10], "lang": LANGS[number // 10 % 2]},
                sampled_by="rate",
                probability=probability,
                scores=scores,
                unscored={},
                definitions=METRICS,
                versions={"embedder": "multilingual-e5-small@1", "groundwatch": "0.1.0"},
                labels={"model": "m-1", "kb_version": "2026-11"},
                trace_id=f"{rng.getrandbits(128):032x}",
                sketch={"question": rng.choice(self._sketches), "context": rng.choice(self._sketches)},
            )
        )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", type=int, default=1_700_000)
    arguments.add_argument("--rate", type=int, default=5000)
    arguments.add_argument("--live-seconds", type=float, default=60.0)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-monitor-") as folder, kafka_cluster(Path(folder) / "k") as cluster:
        return bench(cluster.bootstrap, Path(folder), options.records, options.rate, options.live_seconds)


def bench(bootstrap: str, folder: Path, number: int, rate: int, live_seconds: float) -> int:
    records = Records()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()
    fill(bootstrap, records, number)
    address = f"127.0.0.1:{free_port()}"
    with groundwatch("monitor", address, folder / "monitor.log", environment(bootstrap, address)) as monitor:
        began = time.monotonic()
        wait_until(lambda: is_active(monitor), 300, "the log read back")
        ready = time.monotonic() - began
        cpu = cpu_seconds(monitor.process.pid)
        shown = [
            (labels, value)
            for labels, value in monitor.samples()["groundwatch_rolling_score"]
            if labels["metric"] == "topic_similarity" and labels["window"] == "24h" and labels["app"] == "all"
        ]
        error = abs(shown[0][1] - records.sums.weighted / records.sums.weight)
        print(f"read back: {number:,} records, ready {ready:.1f} s after the start ({cpu:.1f} s of processor time)")
        print(f"gauge against the weighted mean of the log: {error:.1e}")
        scrape = time.monotonic()
        size = len(monitor.get("/metrics")[1])
        print(f"scrape: {(time.monotonic() - scrape) * 1000:.0f} ms, {size / 1000:.0f} kB")
        before = cpu_seconds(monitor.process.pid)
        behind, drained, delays = live(bootstrap, monitor, records, rate, live_seconds)
        used = (cpu_seconds(monitor.process.pid) - before) / (rate * live_seconds)
        peak = memory_mb(monitor.process.pid, "VmHWM")
        print(
            f"live: {rate:,} records/s for {live_seconds:.0f} s; at most {behind:,} behind; all counted {drained:.1f} s"
        )
        print(f"  after the last was produced; {used * 1e6:.0f} µs of processor time a record")
        middle, high = delays[len(delays) // 2], delays[-1 - len(delays) // 100]
        print(f"from produced to counted: median {middle:.2f} s, 99 % {high:.2f} s (looked at once a second)")
        print(f"resident memory: {memory_mb(monitor.process.pid, 'VmRSS'):.0f} MB, at most {peak:.0f} MB")
        print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    targets = {
        "read back within 60 s": ready <= 60,
        "gauge equal to 1e-9": error <= 1e-9,
        "live rate kept": drained <= 5,
        "memory below 150 MB": peak < 150,
    }
    for target, met in targets.items():
        print(f"{'ok    ' if met else 'MISSED'} {target}")
    return 0 if all(targets.values()) else 1


def fill(bootstrap: str, records: Records, number: int) -> None:
    """Spread `number` records over the last 24 h, and have the group commit them all."""
    now = time.time()
    # Half an hour short, so that nothing leaves the window while a busy machine fills the topic and reads it back.
    begin = now - 86_400 + 1800
    with producing(bootstrap) as send:
        for i in range(number):
            at = begin + (now - begin) * i / number
            send(records.next(at - 1), at)
    with contextlib.closing(Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})) as consumer:
        deadline = time.monotonic() + 30
        while True:
            try:
                consumer.commit(offsets=[TopicPartition(TOPIC, 0, number)], asynchronous=False)
                return
            except KafkaException:
                # A broker that has just started is not yet the coordinator of its groups.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)


def live(
    bootstrap: str, monitor: Running, records: Records, rate: int, seconds: float
) -> tuple[int, float, list[float]]:
    """Produce at `rate`; the most records behind, seconds to catch up at the end, and sorted delays of the batches."""
    sent, behind = 0, 0
    marks: list[tuple[int, float]] = []
    delays: list[float] = []

    def look() -> None:
        nonlocal behind
        read = counted(monitor)
        behind = max(behind, int(sent - read))
        while marks and marks[0][0] <= read:
            delays.append(time.monotonic() - marks.pop(0)[1])

    began = looked = time.monotonic()
    with producing(bootstrap) as send:
        while (now := time.monotonic()) - began < seconds:
            while sent < (now - began) * rate:
                send(records.next(time.time()), time.time())
                sent += 1
            if not marks or marks[-1][0] < sent:
                marks.append((sent, now))
            if now - looked > 1.0:
                look()
                looked = now
            time.sleep(0.02)
    ended = time.monotonic()
    # Not asked more often: a scrape takes tens of milliseconds of the process that is measured.
    while marks:
        assert time.monotonic() - ended < 300, f"{marks[-1][0] - counted(monitor):.0f} live records were not counted"
        time.sleep(0.5)
        look()
    drained = time.monotonic() - ended
    return behind, drained, sorted(delays)


@contextlib.contextmanager
def producing(bootstrap: str) -> Iterator[Callable[[bytes, float], None]]:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "lz4",
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
        }
    )

    def send(raw: bytes, at: float) -> None:
        while True:
            try:
                producer.produce(TOPIC, raw, timestamp=int(at * 1000))
            except BufferError:
                producer.poll(0.1)
            else:
                break
        producer.poll(0)

    yield send
    assert producer.flush(120) == 0


def environment(bootstrap: str, address: str) -> dict[str, str]:
    names = ",".join(f'"{app}"' for app in APPS)
    return {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "GROUNDWATCH__TOPICS__SCORES": TOPIC,
        "GROUNDWATCH__MONITOR__GROUP": GROUP,
        "GROUNDWATCH__MONITOR__REBUILD_DEADLINE_SECONDS": "300",
        "GROUNDWATCH__METRICS__MONITOR__LISTEN": address,
        "GROUNDWATCH__SEGMENTS__ALLOW": f'{{"app":[{names}],"lang":["en","zh"]}}',
    }


def is_active(monitor: Running) -> bool:
    try:
        return monitor.get("/readyz") == (200, "active\n")
    except OSError:
        return False


def counted(monitor: Running) -> float:
    return monitor.total("groundwatch_scores_read_total", outcome="counted")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1000
    raise LookupError(field)


if __name__ == "__main__":
    sys.exit(main())
