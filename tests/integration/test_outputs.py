"""Outputs against a real broker that refuses by size."""

from __future__ import annotations

import time
import uuid

from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import CollectorRegistry, Counter

from consumer.kafka_config import producer
from consumer.outputs import Output, Outputs
from consumer.settings import Kafka
from tests.integration.scorer_harness import read_all


def test_a_large_output_is_shrunk_and_takes_no_small_one_down_with_it(kafka: str) -> None:
    """A broker refuses whole batches: the small records of a refused batch must arrive all the same."""
    topic = f"outputs-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "20000"})]).values():
        future.result()
    refused = Counter("refused", "", ["topic"], registry=CollectorRegistry())
    outputs = Outputs(producer(Kafka(bootstrap_servers=kafka, producer={"compression.type": "none"})), refused)
    done: list[str] = []
    noise = bytes(range(256))
    for number in range(20):
        outputs.send(Output(topic, b"small-%d" % number, b"s" * 100), lambda: done.append("small"))
    shrunk = Output(
        topic,
        b"large",
        noise * 200,
        smaller=iter([Output(topic, b"large", noise * 100), Output(topic, b"large", None)]),
    )
    outputs.send(shrunk, lambda: done.append("shrunk"))
    outputs.send(Output(topic, b"hopeless", noise * 200), lambda: done.append("refused"))
    deadline = time.monotonic() + 30
    while len(done) < 22 and time.monotonic() < deadline:
        outputs.serve(0.1)
    assert sorted(done) == ["refused", *["shrunk"], *["small"] * 20]
    found = read_all(kafka, topic)
    assert sorted(r.key for r in found if r.key) == sorted([b"large", *(b"small-%d" % n for n in range(20))])
    assert [r.value for r in found if r.key == b"large"] == [None]
    assert refused.labels(topic)._value.get() == 1
