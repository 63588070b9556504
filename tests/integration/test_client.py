"""The QA service's client against a real Kafka, and against none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import orjson
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.client import Client, Counts
from consumer.embedded import free_port
from consumer.settings import Kafka
from metrics.event import Chunk, Event
from tests.services import kafka_cluster
from tests.topic_making import records


def made_topic(bootstrap: str, **config: str) -> str:
    topic = f"client.{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values():
        future.result(20)
    return topic


def adds_up(counts: Counts) -> bool:
    return counts.logged == counts.delivered + sum(counts.dropped.values()) + counts.waiting


def test_answers_arrive_in_the_native_form(kafka: str) -> None:
    topic = made_topic(kafka)
    with Client(Kafka(bootstrap_servers=kafka), topic, id_header="event-id") as client:
        event_id = client.log_answer(
            "年假几天?",
            ["Staff have 25 days.", {"text": "Or 30.", "id": "doc-7#3", "score": 0.5}, Chunk("Ask HR.")],
            "25",
            labels={"app": "hr"},
            conversation=[{"role": "user", "content": "Hello"}],
            feedback=-1,
        )
        client.log(Event(id="evt-2", timestamp=0.0, question=None, contexts=(), answer=None))
        counts = client.close()
    assert counts == Counts(logged=2, delivered=2, dropped={}, waiting=0)
    first, second = records(kafka, topic)
    assert first.key().decode() == event_id
    assert first.headers() == [("event-id", event_id.encode())]
    native = orjson.loads(first.value())
    assert native["id"] == event_id
    assert native["question"] == "年假几天?"
    assert [c["text"] for c in native["contexts"]] == ["Staff have 25 days.", "Or 30.", "Ask HR."]
    assert native["contexts"][1] == {"id": "doc-7#3", "text": "Or 30.", "score": 0.5}
    assert native["conversation"] == [{"role": "user", "content": "Hello"}]
    assert (native["labels"], native["feedback"]) == ({"app": "hr"}, -1)
    assert second.key() == b"evt-2"


def test_without_a_broker_a_call_neither_blocks_nor_raises(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(Kafka(bootstrap_servers=f"127.0.0.1:{free_port()}"), "t", max_waiting=100, undelivered_seconds=1.0)
    slowest = 0.0
    for _ in range(2000):
        started = time.perf_counter()
        client.log_answer("q", ["c" * 3000], "a")
        slowest = max(slowest, time.perf_counter() - started)
    full = client.counts()
    assert slowest < 0.25, "a call waits for nothing; what is left is the machine's own scheduling"
    assert full.dropped["queue_full"] >= 1800
    assert full.waiting <= 100
    assert adds_up(full)
    deadline = time.monotonic() + 15
    while client.counts().waiting and time.monotonic() < deadline:
        time.sleep(0.1)
    assert client.counts().dropped["undelivered"] == full.waiting
    started = time.monotonic()
    counts = client.close(1.0)
    assert time.monotonic() - started < 5
    assert counts.logged == 2000 == sum(counts.dropped.values())
    warnings = [r for r in caplog.records if r.name == "consumer.client"]
    assert 1 <= len(warnings) <= 2, "said, but not once an event"


def test_close_keeps_its_deadline_and_counts_what_it_gives_up() -> None:
    client = Client(Kafka(bootstrap_servers=f"127.0.0.1:{free_port()}"), "t")
    for _ in range(10):
        client.log_answer("q", [], "a")
    started = time.monotonic()
    counts = client.close(0.5)
    assert time.monotonic() - started < 4
    assert counts == Counts(logged=10, delivered=0, dropped={"closed": 10}, waiting=0)
    client.log_answer("q", [], "a")
    assert client.close().dropped == {"closed": 11}


def test_a_lone_surrogate_is_no_reason_to_lose_an_event(kafka: str) -> None:
    topic = made_topic(kafka)
    with Client(Kafka(bootstrap_servers=kafka), topic) as client:
        client.log_answer("cut \ud83d off", ["c"], "a", id="evt-\udc80")
        assert client.close().delivered == 1
    (found,) = records(kafka, topic)
    assert orjson.loads(found.value())["question"] == "cut ? off"


def test_what_is_no_event_is_counted_not_raised(kafka: str) -> None:
    topic = made_topic(kafka)
    with Client(Kafka(bootstrap_servers=kafka), topic) as client:
        client.log_answer("q", [object()], "a")  # type: ignore[list-item]
        client.log_answer("q", [{"page": "x"}], "a")
        client.log_answer("q", ["c"], object())  # type: ignore[arg-type]
        client.log(Event(id="e", timestamp=float("inf"), question=None, contexts=(), answer=None))
        client.log_answer("q", None, "a", id=7)  # type: ignore[arg-type]
        counts = client.close()
    assert counts == Counts(logged=5, delivered=1, dropped={"invalid": 4}, waiting=0)


def test_an_event_too_large_for_client_or_broker_is_counted(kafka: str) -> None:
    topic = made_topic(kafka, **{"max.message.bytes": "1100000"})
    with Client(Kafka(bootstrap_servers=kafka, producer={"compression.type": "none"}), topic) as client:
        client.log_answer("q", ["x" * 9_000_000], "a")
        client.log_answer("q", ["x" * 2_000_000], "a")
        client.log_answer("q", ["x"], "a")
        counts = client.close()
    assert counts.dropped == {"too_large": 2}
    assert counts.delivered == 1


def test_a_configuration_that_cannot_work_is_said_at_the_start() -> None:
    with pytest.raises(KafkaException, match=r"no\.such\.property"):
        Client(Kafka(producer={"no.such.property": 1}), "t")


def test_many_threads_lose_no_count(kafka: str) -> None:
    topic = made_topic(kafka)
    with Client(Kafka(bootstrap_servers=kafka), topic) as client:
        threads = [
            threading.Thread(target=lambda: [client.log_answer("q", ["c"], "a") for _ in range(500)]) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.close(20) == Counts(logged=4000, delivered=4000, dropped={}, waiting=0)
    assert len({m.key() for m in records(kafka, topic)}) == 4000


FORKING = """
import os, sys
from consumer.client import Client
from consumer.settings import Kafka
client = Client(Kafka(bootstrap_servers=sys.argv[1]), sys.argv[2])
client.log_answer("q", ["c"], "a", id="parent-1")
pid = os.fork()
if not pid:
    client.log_answer("q", ["c"], "a", id="child-1")
    counts = client.close(10)
    assert (counts.logged, counts.delivered) == (1, 1), counts
    sys.exit(0)
client.log_answer("q", ["c"], "a", id="parent-2")
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
counts = client.close(10)
assert (counts.logged, counts.delivered) == (2, 2), counts
"""


def test_a_service_that_forks_its_workers_logs_from_all_of_them(kafka: str) -> None:
    # field case 36: librdkafka's threads do not exist in a forked child, which waited for them for ever.
    topic = made_topic(kafka)
    done = subprocess.run(
        [sys.executable, "-c", FORKING, kafka, topic], capture_output=True, text=True, timeout=40, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(m.key() for m in records(kafka, topic)) == [b"child-1", b"parent-1", b"parent-2"]


def test_a_service_that_ends_without_close_still_sends_what_waits(kafka: str) -> None:
    topic = made_topic(kafka)
    program = (
        "import sys; from consumer.client import Client; c = Client.to(sys.argv[1], sys.argv[2])\n"
        "for _ in range(200): c.log_answer('q', ['c'], 'a')"
    )
    subprocess.run([sys.executable, "-c", program, kafka, topic], check=True, timeout=40)
    assert len(records(kafka, topic)) == 200


@pytest.mark.full
def test_a_broker_that_comes_back_gets_what_waited(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path / "k") as cluster:
        topic = made_topic(cluster.bootstrap)
        with Client(Kafka(bootstrap_servers=cluster.bootstrap), topic) as client:
            client.log_answer("q", ["c"], "a", id="before")
            cluster.control("kill", "--broker", "1")
            for n in range(50):
                client.log_answer("q", ["c"], "a", id=f"during-{n}")
            cluster.control("restart", "--broker", "1")
            assert client.close(60).delivered == 51
        assert len({m.key() for m in records(cluster.bootstrap, topic)}) == 51


def test_a_killed_service_takes_nobody_with_it(kafka: str) -> None:
    """A worker that is ended by SIGTERM does not hang in the client."""
    topic = made_topic(kafka)
    program = (
        "import sys, time; from consumer.client import Client; c = Client.to(sys.argv[1], sys.argv[2])\n"
        "c.log_answer('q', ['c'], 'a'); print('up', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", program, kafka, topic], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(10) == -signal.SIGTERM
