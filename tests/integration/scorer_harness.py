"""A whole scorer in a thread of the test, on a real broker, over an embedder that needs no model.

The embedder stands behind the product's own protocol: its vectors are real (unit length, one per text), only cheap.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client import CollectorRegistry

from consumer.embedders import cache_counter, evaluator_over, vector_metrics
from consumer.health import Pulse
from consumer.scorer import Scorer
from consumer.scorer_metrics import ScorerMetrics
from consumer.scoring_process import build
from consumer.settings import Settings
from consumer.thresholds import thresholds_in_force
from consumer.topics import create_topics
from metrics.evaluation import Evaluator
from metrics.judge import Judge
from metrics.metric import Text, Vector
from metrics.outcome import Unscored

VECTOR_METRICS = ("topic_similarity", "question_context_similarity", "question_answer_similarity")


@dataclass
class HashEmbedder:
    """Vectors from the hash of the text. `before` is called with every batch: a test sleeps, blocks or raises there."""

    before: Callable[[Sequence[Text]], None] = lambda texts: None
    identity: str = "hash/1"
    dimension: int = 16

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        self.before(texts)
        return [self._vector(text.content) for text in texts]

    def _vector(self, content: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(content.encode("utf-8", "replace")).digest()[:8], "big")
        raw = np.random.default_rng(seed).standard_normal(self.dimension)
        return (raw / np.linalg.norm(raw)).astype(np.float32)


def test_settings(bootstrap: str, **sections: dict[str, Any]) -> Settings:
    """Settings with topics and group of this test's own; `sections` are merged over them."""
    tag = uuid.uuid4().hex[:8]
    values: dict[str, Any] = {
        "kafka": {"bootstrap_servers": bootstrap, "consumer": {"session.timeout.ms": 6000}},
        "topics": {
            "events": (f"events-{tag}",), "scores": f"scores-{tag}", "flagged": f"flagged-{tag}",
            "deadletter": f"dead-{tag}", "redrive": f"redrive-{tag}", "labels": f"labels-{tag}", "partitions": 1,
        },
        "scoring": {"metrics": VECTOR_METRICS, "sketch": False},
        "scorer": {"group": f"group-{tag}", "commit_interval_seconds": 0.2},
    }  # fmt: skip
    for section, own in sections.items():
        values[section] = values.get(section, {}) | own
    return Settings.model_validate(values)


test_settings.__test__ = False  # type: ignore[attr-defined]


@dataclass
class Harness:
    """A running scorer and what a test asks about it."""

    settings: Settings
    scorer: Scorer
    registry: CollectorRegistry
    thread: threading.Thread
    failure: list[BaseException] = field(default_factory=list)

    def value(self, name: str, **labels: str) -> float:
        return sum(
            sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"groundwatch_{name}" and labels.items() <= sample.labels.items()
        )

    def ended(self) -> dict[str, float]:
        kinds = ("sampled_out", "ignored", "scored", "unscored", "dead_lettered")
        return {kind: self.value("events_total", outcome=kind) for kind in kinds}

    def stop(self) -> None:
        self.scorer.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


@contextmanager
def running_scorer(
    settings: Settings, embedder: HashEmbedder | None = None, judge: Judge | None = None
) -> Iterator[Harness]:
    """`judge` None: the one of the settings, where they name faithfulness."""
    create_topics(settings, 20)
    registry = CollectorRegistry()
    vectors = embedder or HashEmbedder()
    evaluator = evaluator_over(settings, vectors, registry, cache_counter(registry))
    if judge is not None:
        evaluator = Evaluator(vector_metrics(settings.scoring), vectors, sketches=False, judge=judge)
    thresholds = thresholds_in_force(settings, evaluator.definitions, evaluator.thresholds)
    topics = settings.topics
    metrics = ScorerMetrics(
        registry,
        metrics=evaluator.definitions,
        outputs=(topics.scores, topics.flagged, topics.deadletter),
        versions={"groundwatch": "t"},
    )
    scorer = build(settings, evaluator, thresholds, metrics, Pulse(time.monotonic), {"groundwatch": "t"})
    failure: list[BaseException] = []

    def run() -> None:
        try:
            scorer.run(stopping=lambda: None)
        except Exception as error:
            failure.append(error)
        finally:
            scorer.close()

    thread = threading.Thread(target=run, name="scorer")
    thread.start()
    harness = Harness(settings, scorer, registry, thread, failure)
    try:
        yield harness
    finally:
        scorer.stop()
        thread.join(60)
    assert not thread.is_alive(), "the scorer did not stop"


def event(number: int, **changes: Any) -> dict[str, Any]:
    """A native event of this test suite's own; ids are `e<number>`."""
    return {
        "id": f"e{number}",
        "timestamp": time.time(),
        "question": f"How many days of leave does grade {number} have?",
        "contexts": [
            {"id": f"doc-{number % 7}", "text": f"Grade {number} has {20 + number % 9} days of leave a year."}
        ],
        "answer": f"Grade {number} has {20 + number % 9} days of leave.",
        "labels": {"app": "hr"},
    } | changes


def produce(bootstrap: str, topic: str, values: Sequence[bytes | dict[str, Any] | None], **options: Any) -> None:
    """Put records on a topic and wait for the broker; `options` go to `produce` (key, partition, headers)."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "message.max.bytes": 20_000_000})
    for value in values:
        raw = orjson.dumps(value) if isinstance(value, dict) else value
        while True:
            try:
                producer.produce(topic, raw, **options)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]


def read_all(bootstrap: str, topic: str) -> list[Record]:
    """Everything that is on the topic now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False,
                         "fetch.message.max.bytes": 20_000_000})  # fmt: skip
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10) for p in partitions}
        consumer.assign([TopicPartition(topic, p, low) for p, (low, _) in ends.items()])
        missing = {p for p, (low, high) in ends.items() if high > low}
        records = []
        while missing:
            for message in consumer.consume(500, 1.0):
                assert message.error() is None, message.error()
                records.append(Record(message.key(), message.value(), dict(message.headers() or ())))
            position = {
                tp.partition: tp.offset for tp in consumer.position([TopicPartition(topic, p) for p in missing])
            }
            missing = {p for p in missing if position[p] < ends[p][1]}
        return records
    finally:
        consumer.close()


def committed(settings: Settings, topic: str, partition: int = 0) -> int:
    """The group's committed offset; -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": settings.scorer.group})
    try:
        return int(consumer.committed([TopicPartition(topic, partition)], timeout=10)[0].offset)
    finally:
        consumer.close()
