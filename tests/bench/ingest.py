"""Ingest from a filled topic at 1 % sampling: the scorer beside a bare client loop and a Faust agent that only counts.

    python -m tests.bench.ingest [--events 400000]

All three read the same topic of 3 kB events (ids in the key) on the same real Kafka, one after the other. The scorer is
timed from its first event to the moment when every event is accounted for and its offset committed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from consumer.embedded import free_port
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.processes import groundwatch
from tests.services import kafka_cluster

PARTITIONS = 4
WORDS = [
    "leave",
    "grade",
    "policy",
    "days",
    "office",
    "form",
    "manager",
    "approval",
    "payroll",
    "account",
    "reset",
    "ticket",
    "travel",
    "claim",
    "limit",
]


def fill(bootstrap: str, topic: str, events: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.kbytes": 500_000})
    generator = random.Random(3)
    passages = [" ".join(generator.choices(WORDS, k=95)) for _ in range(200)]
    for number in range(events):
        value = orjson.dumps({
            "id": f"event-{number}", "timestamp": time.time(),
            "question": " ".join(generator.choices(WORDS, k=10)),
            "contexts": [{"id": f"d{i}", "text": passages[i]} for i in generator.sample(range(200), 4)],
            "answer": " ".join(generator.choices(WORDS, k=40)), "labels": {"app": "hr"},
        })  # fmt: skip
        while True:
            try:
                producer.produce(topic, value, f"event-{number}")
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def bare(bootstrap: str, topic: str, events: int) -> float:
    """Events/s of a plain `consume(1000)` loop that reads key and value."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest",
                         "enable.auto.commit": False})  # fmt: skip
    consumer.subscribe([topic])
    seen, size, begun = 0, 0, 0.0
    while seen < events:
        for message in consumer.consume(1000, 1.0):
            if begun == 0.0:
                begun = time.perf_counter()
            size += len(message.key()) + len(message.value())
            seen += 1
    rate = seen / (time.perf_counter() - begun)
    consumer.close()
    return rate


FAUST = """
import os, sys, time, faust
bootstrap, topic, events = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
app = faust.App("bench-" + topic, broker="kafka://" + bootstrap, store="memory://", topic_disable_leader=True,
                web_enabled=False, consumer_auto_offset_reset="earliest")
source = app.topic(topic, value_type=bytes, value_serializer="raw", key_serializer="raw")
seen, begun = 0, 0.0
@app.agent(source)
async def count(stream):
    global seen, begun
    async for _ in stream:
        if seen == 0:
            begun = time.perf_counter()
        seen += 1
        if seen == events:
            os.write(1, b"RATE %f\\n" % (seen / (time.perf_counter() - begun)))  # Faust takes sys.stdout over
sys.argv = ["faust", "worker", "-l", "error", "--without-web"]
app.main()
"""


def faust_agent(bootstrap: str, topic: str, events: int, folder: Path) -> float:
    """Events/s of a Faust agent that only counts."""
    script = folder / "count.py"
    script.write_text(FAUST)
    process = subprocess.Popen(
        [sys.executable, str(script), bootstrap, topic, str(events)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("RATE"):
                return float(line.split()[1])
        raise RuntimeError("the Faust agent ended without a figure")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def scorer(bootstrap: str, topic: str, tag: str, events: int, folder: Path) -> tuple[float, dict[str, float]]:
    """Events/s of the scorer until all is accounted for and committed, and how the events ended."""
    environment = scorer_environment(bootstrap, topic, tag)
    address = environment["GROUNDWATCH__METRICS__SCORER__LISTEN"]
    group = environment["GROUNDWATCH__SCORER__GROUP"]
    watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    with groundwatch("score", address, folder / "scorer.log", environment) as running:
        while running.total("groundwatch_events_in_total") == 0:
            assert running.process.poll() is None, (folder / "scorer.log").read_text()
            time.sleep(0.02)
        begun = time.perf_counter()
        early = running.total("groundwatch_events_in_total")
        while sum(max(0, tp.offset) for tp in watcher.committed(partitions, timeout=10)) < events:
            time.sleep(0.1)
        seconds = time.perf_counter() - begun
        ended = {labels["outcome"]: 0.0 for labels, _ in running.samples()["groundwatch_events_total"]}
        for labels, value in running.samples()["groundwatch_events_total"]:
            ended[labels["outcome"]] += value
        ended["shed"] = running.total("groundwatch_unscored_total", metric="topic_similarity", reason="shed")
        running.terminate()
    watcher.close()
    return (events - early) / seconds, ended


def scorer_environment(bootstrap: str, topic: str, tag: str) -> dict[str, str]:
    return {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "GROUNDWATCH__TOPICS__EVENTS": f'["{topic}"]',
        "GROUNDWATCH__TOPICS__PARTITIONS": str(PARTITIONS),
        **{f"GROUNDWATCH__TOPICS__{name.upper()}": f"{name}-{tag}"
           for name in ("scores", "flagged", "deadletter", "redrive", "labels")},
        "GROUNDWATCH__SCORER__GROUP": f"scorer-{tag}",
        "GROUNDWATCH__SCORER__MAX_DELAY_SECONDS": "1",
        "GROUNDWATCH__SAMPLING__RATE": "0.01",
        "GROUNDWATCH__SAMPLING__KEY_IS_ID": "true",
        "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{free_port()}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--faust-events", type=int, default=60_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, kafka_cluster(Path(name) / "k") as cluster:
        folder = Path(name)
        tag = uuid.uuid4().hex[:8]
        topic = f"events-{tag}"
        create_topics(load(None, scorer_environment(cluster.bootstrap, topic, tag)).settings, 20)
        fill(cluster.bootstrap, topic, options.events)
        os.sync()  # else whoever reads first shares the machine with the writing of gigabytes to the disk
        before = bare(cluster.bootstrap, topic, options.events)
        ours, ended = scorer(cluster.bootstrap, topic, tag, options.events, folder)
        after = bare(cluster.bootstrap, topic, options.events)
        agent = faust_agent(cluster.bootstrap, topic, options.faust_events, folder)
    plain = (before + after) / 2
    print(f"bare consume(1000) loop, key and value read: {before:,.0f} and {after:,.0f} events/s (before and after)")
    print(f"faust agent that only counts:                {agent:,.0f} events/s")
    print(f"scorer, 1 % sampling, all committed:         {ours:,.0f} events/s; {ended}")
    sampled = ended["scored"] + ended["unscored"]
    print(f"ratios: {ours / plain:.2f} of the bare loop, {ours / agent:.1f} times the faust agent; "
          f"shed {ended['shed'] / sampled:.0%} of what was sampled")  # fmt: skip


if __name__ == "__main__":
    main()
