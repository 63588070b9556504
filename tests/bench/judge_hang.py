"""Commit rate with an LLM judge that starts to hang under load, beside a run without a judge, on a real Kafka.

    python -m tests.bench.judge_hang [--runs 3] [--seconds 20] [--timeout 4] [--answered 0]

Two workers read the same full topic at the same time, as fast as they can, one with a judge and one without
(`judge.kind = "none"`), on the same processor, so that both share whatever else the machine does. Passages, questions
and answers recur, and both workers have embedded them before: what is compared is the pipeline. The judge answers at
first (50 ms a request); then, with the circuit closed, no request is answered any more; one judge timeout later the
committed offsets of both are measured. Fails where the median ratio is below 0.9, or where an event of the hang has
another reason than judge_timeout or judge_busy.

With `--answered N` every N-th request is still answered, which keeps the circuit closed all the time. What is committed
then comes in steps of about one timeout, because a partition waits for its answers at the judge. So a place is the mean
of the committed offsets over one timeout: two single looks would be up to a step off, which is --timeout in --seconds.
Beside the rates stands the processor time of either worker for a committed event: it does not depend on how much of the
machine each of them got.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from consumer.embedded import free_port
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.integration.judge_server import Answer, Call, JudgeServer, Script, hanging, honest, judge_server
from tests.processes import Running, groundwatch, wait_until
from tests.services import kafka_cluster

PARTITIONS = 4
TOPIC = "events"
WARM_EVENTS = 2000
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


@dataclass(frozen=True, slots=True)
class Place:
    """When (monotonic), committed events and processor time of each worker: all of them means over some seconds."""

    at: float
    events: tuple[float, ...]
    busy: tuple[float, ...]


def place_of(workers: Sequence[tuple[Running, Consumer]], seconds: float) -> Place:
    looks: list[list[float]] = []
    begun = now = time.monotonic()
    while now - begun < seconds or not looks:
        looks.append([now, *(committed(asking, TOPIC) for _, asking in workers)])
        looks[-1] += [processor_seconds(running.process.pid) for running, _ in workers]
        time.sleep(0.05)
        now = time.monotonic()
    at, *means = (statistics.fmean(of_one) for of_one in zip(*looks, strict=True))
    return Place(at, tuple(means[: len(workers)]), tuple(means[len(workers) :]))


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def hanging_but(every: int) -> Script:
    """No request is answered any more, or one in `every`."""
    return lambda call: slow(call) if every and call.number % every == 0 else hanging(call)


def worker(stack: ExitStack, values: dict[str, str], folder: Path, **own: str) -> tuple[Running, Consumer]:
    """A scorer with a group of its own, and a client to ask for its commits."""
    name = f"hang-{uuid.uuid4().hex[:8]}"
    port = free_port()
    environment = values | {f"GROUNDWATCH__{key}": value for key, value in own.items()}
    environment |= {"GROUNDWATCH__SCORER__GROUP": name, "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{port}"}
    running = stack.enter_context(groundwatch("score", f"127.0.0.1:{port}", folder / f"{name}.log", environment))
    # Both on one processor: on two, one of them may have the busier neighbours all the time.
    os.sched_setaffinity(running.process.pid, {min(os.sched_getaffinity(0))})
    asking = Consumer({"bootstrap.servers": values["GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS"], "group.id": name})
    stack.callback(asking.close)
    return running, asking


def rates(values: dict[str, str], folder: Path, options: argparse.Namespace, server: JudgeServer) -> list[list[float]]:
    """Events committed a second without a judge, and with one that hangs, one judge timeout after it began to; and the
    processor time of each for an event, in seconds."""
    server.script = slow
    with ExitStack() as stack:
        without = worker(stack, values, folder, JUDGE__KIND="none")
        scorer, asking = worker(
            stack, values, folder, JUDGE__KIND="llm", JUDGE__URL=server.url, JUDGE__MODEL="scripted",
            JUDGE__TIMEOUT_SECONDS=str(options.timeout), JUDGE__CACHE="false",
        )  # fmt: skip
        both = (without, (scorer, asking))
        wait_until(lambda: min(committed(one, TOPIC) for _, one in both) > WARM_EVENTS, 400, "both workers are warm")
        assert scorer.total("groundwatch_judge_requests_total", outcome="ok") > 0, "the judge had no load"
        assert scorer.total("groundwatch_judge_circuit_open") == 0, "the circuit is not closed"
        server.script = hanging_but(options.answered)
        before = unscored(scorer)
        time.sleep(options.timeout + 1.0)
        circuit = [scorer.total("groundwatch_judge_circuit_open")]
        first = place_of(both, options.timeout)
        time.sleep(options.seconds)
        last = place_of(both, options.timeout)
        circuit.append(scorer.total("groundwatch_judge_circuit_open"))
        grown = {r: n - before.get(r, 0) for r, n in unscored(scorer).items() if n > before.get(r, 0)}
    found = ", ".join(f"{reason} {n:.0f}" for reason, n in grown.items())
    states = " and ".join("open" if state else "closed" for state in circuit)
    print(f"  while it hung: {found}; circuit {states} before and after the measurement")
    if not grown.keys() <= HANG_REASONS or "judge_timeout" not in grown:
        sys.exit(f"reasons {sorted(grown)} while the judge hung; only {sorted(HANG_REASONS)} may be there")
    if max(last.events) >= options.events:
        sys.exit("the topic was read to its end: give more --events")
    grown_by = [b - a for a, b in zip(first.events, last.events, strict=True)]
    used = [b - a for a, b in zip(first.busy, last.busy, strict=True)]
    return [[n / (last.at - first.at) for n in grown_by], [s / n for s, n in zip(used, grown_by, strict=True)]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--timeout", type=float, default=4.0)
    parser.add_argument("--answered", type=int, default=0, help="one request in so many is still answered; 0: none")
    parser.add_argument("--events", type=int, default=150_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        cluster = stack.enter_context(kafka_cluster(folder / "k"))
        names = ("scores", "flagged", "deadletter", "redrive", "labels")
        values = {
            "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap,
            "GROUNDWATCH__TOPICS__EVENTS": f'["{TOPIC}"]',
            **{f"GROUNDWATCH__TOPICS__{topic.upper()}": topic for topic in names},
            "GROUNDWATCH__TOPICS__PARTITIONS": str(PARTITIONS),
            "GROUNDWATCH__SCORING__METRICS": '["faithfulness", "topic_similarity"]',
            "GROUNDWATCH__SCORER__MAX_DELAY_SECONDS": "86400",
            # Commits come in steps: a second of them is a twentieth of what is measured.
            "GROUNDWATCH__SCORER__COMMIT_INTERVAL_SECONDS": "0.2",
            "GROUNDWATCH__EMBEDDING__THREADS": "1",
        }
        create_topics(load(None, values).settings, 30)
        fill(cluster.bootstrap, TOPIC, options.events)
        server = stack.enter_context(judge_server())
        ratios = []
        for run in range(options.runs):
            (without, hung), (cost_without, cost_hung) = rates(values, folder, options, server)
            ratios.append(hung / without)
            print(
                f"run {run + 1}: {without:.0f} events/s without a judge, {hung:.0f} with one that hangs, "
                f"ratio {ratios[-1]:.3f}; processor time an event {1000 * cost_without:.3f} and "
                f"{1000 * cost_hung:.3f} ms, ratio {cost_without / cost_hung:.3f}",
                flush=True,
            )
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.3f}")
    if ratio < BAR:
        sys.exit(f"the ratio is below {BAR}")


if __name__ == "__main__":
    main()
