"""Commit rate with an LLM judge that starts to hang under load, beside a run without a judge, on a real Kafka.

    python -m tests.bench.judge_hang [--runs 3] [--seconds 12] [--timeout 4]

The topic is full, so the scorer works as fast as it can. Its passages, questions and answers recur and are embedded
before: what is compared is the pipeline. With the judge: it answers at first (50 ms a request), then no request is
answered any more, while the circuit is closed; one judge timeout later the committed offsets are measured. Without it
(`judge.kind = "none"`): the same, at the same time after the start. Runs alternate; the ratio is that of the medians.
Fails below 0.9, or where an event of the hang has another reason than judge_timeout or judge_busy.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from consumer.embedded import free_port
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.integration.judge_server import Answer, Call, JudgeServer, hanging, honest, judge_server
from tests.processes import Running, groundwatch, wait_until
from tests.services import kafka_cluster

PARTITIONS = 4
LOADED_SECONDS = 4.0
BAR = 0.9
HANG_REASONS = {"judge_timeout", "judge_busy"}


def fill(bootstrap: str, topic: str, events: int) -> None:
    """Events of their own ids over 50 different questions, passages and answers."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.kbytes": 500_000})
    generator = random.Random(3)
    passages = [
        f"Grade {n} has {n + 20} days of leave a year. " + "Forms lie with the office. " * 10 for n in range(50)
    ]
    for number in range(events):
        n = generator.randrange(50)
        value = {
            "id": f"e{number}",
            "timestamp": time.time(),
            "question": f"How many days of leave has grade {n}?",
            "contexts": [passages[n], passages[(n + 1) % 50]],
            "answer": f"Grade {n} has {n + 20} days of leave.",
            "labels": {"app": "hr"},
        }
        while True:
            try:
                producer.produce(topic, orjson.dumps(value), f"e{number}")
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def committed(consumer: Consumer, topic: str) -> int:
    """Events of the topic that the group has committed. A group's coordinator may take a while to be there."""
    deadline = time.monotonic() + 30
    while True:
        try:
            places = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], timeout=10)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return sum(max(0, place.offset) for place in places)


def unscored(scorer: Running) -> dict[str, float]:
    return {
        labels["reason"]: value
        for labels, value in scorer.samples().get("groundwatch_unscored_total", [])
        if labels["metric"] == "faithfulness"
    }


def slow(call: Call) -> Answer:
    return Answer(honest(call).text, delay=0.05)


def rate(values: dict[str, str], folder: Path, options: argparse.Namespace, server: JudgeServer | None) -> float:
    """Events committed a second, one judge timeout after the judge has begun to hang."""
    group = f"hang-{uuid.uuid4().hex[:8]}"
    own = values | {"GROUNDWATCH__SCORER__GROUP": group}
    if server is not None:
        server.script = slow
        own |= {
            "GROUNDWATCH__JUDGE__KIND": "llm",
            "GROUNDWATCH__JUDGE__URL": server.url,
            "GROUNDWATCH__JUDGE__MODEL": "scripted",
            "GROUNDWATCH__JUDGE__TIMEOUT_SECONDS": str(options.timeout),
            "GROUNDWATCH__JUDGE__CACHE": "false",
        }
    settings = load(None, own).settings
    topic = settings.topics.events[0]
    asking = Consumer({"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": group})
    try:
        with groundwatch("score", settings.metrics.scorer.listen, folder / "score.log", own) as scorer:
            wait_until(lambda: committed(asking, topic) > 0, 120, "the first commit")
            time.sleep(LOADED_SECONDS)
            before: dict[str, float] = {}
            if server is not None:
                assert scorer.total("groundwatch_judge_requests_total", outcome="ok") > 0, "the judge had no load"
                assert scorer.total("groundwatch_judge_circuit_open") == 0, "the circuit is not closed"
                server.script = hanging
                before = unscored(scorer)
            time.sleep(options.timeout + 1.0)
            first, begun = committed(asking, topic), time.monotonic()
            time.sleep(options.seconds)
            last, ended = committed(asking, topic), time.monotonic()
            if server is not None:
                grown = {r: n - before.get(r, 0) for r, n in unscored(scorer).items() if n > before.get(r, 0)}
                print(f"  while it hung: {', '.join(f'{r} {n:.0f}' for r, n in grown.items())}")
                if not grown.keys() <= HANG_REASONS or "judge_timeout" not in grown:
                    sys.exit(f"reasons {sorted(grown)} while the judge hung; only {sorted(HANG_REASONS)} may be there")
    finally:
        asking.close()
    if last >= options.events:
        sys.exit("the topic was read to its end: give more --events")
    return (last - first) / (ended - begun)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--timeout", type=float, default=4.0)
    parser.add_argument("--events", type=int, default=150_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        cluster = stack.enter_context(kafka_cluster(folder / "k"))
        names = ("scores", "flagged", "deadletter", "redrive", "labels")
        values = {
            "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap,
            "GROUNDWATCH__TOPICS__EVENTS": '["events"]',
            **{f"GROUNDWATCH__TOPICS__{topic.upper()}": topic for topic in names},
            "GROUNDWATCH__TOPICS__PARTITIONS": str(PARTITIONS),
            "GROUNDWATCH__SCORING__METRICS": '["faithfulness", "topic_similarity"]',
            "GROUNDWATCH__SCORER__MAX_DELAY_SECONDS": "86400",
            "GROUNDWATCH__JUDGE__KIND": "none",
            "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{free_port()}",
        }
        create_topics(load(None, values).settings, 30)
        fill(cluster.bootstrap, "events", options.events)
        server = stack.enter_context(judge_server())
        without, hung = [], []
        for run in range(options.runs):
            without.append(rate(values, folder, options, None))
            hung.append(rate(values, folder, options, server))
            print(f"run {run + 1}: {without[-1]:.0f} events/s without a judge, {hung[-1]:.0f} with one that hangs")
    ratio = statistics.median(hung) / statistics.median(without)
    print(f"medians: {statistics.median(without):.0f} and {statistics.median(hung):.0f} events/s, ratio {ratio:.3f}")
    if ratio < BAR:
        sys.exit(f"the ratio is below {BAR}")


if __name__ == "__main__":
    main()
