"""`groundwatch send` against a real Kafka, run as a person runs it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.embedded import free_port
from tests.services import kafka_cluster
from tests.topic_making import records

COMMAND = [sys.executable, "-c", "from consumer.cli import main; main()", "send"]


def made_topic(bootstrap: str) -> str:
    topic = f"send.{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(20)
    return topic


def environ(bootstrap: str, **more: str) -> dict[str, str]:
    return os.environ | {"GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": bootstrap} | more


def send(bootstrap: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=90, env=environ(bootstrap, **more)
    )


def native(n: int) -> str:
    return json.dumps(
        {"id": f"evt-{n}", "question": "年假几天?", "contexts": ["Staff have 25 days."], "answer": "25"},
        ensure_ascii=False,
    )


def test_lines_arrive_as_they_are_with_the_id_as_key(kafka: str, tmp_path: Path) -> None:
    without_id = '{"query": "Where?",  "contexts": ["Room 4."], "response": "Room 4."}'
    lines = [native(1), "not json {", without_id, native(2)]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    topic = made_topic(kafka)
    done = send(kafka, str(file), "--topic", topic, "--id-header", "event-id")
    assert done.returncode == 0, done.stderr
    assert f"4 of 4 events acknowledged on {topic}" in done.stderr
    found = records(kafka, topic)
    assert [m.value().decode() for m in found] == lines
    assert [m.key() for m in found] == [b"evt-1", None, None, b"evt-2"]
    assert [m.headers() for m in found] == [[("event-id", b"evt-1")], None, None, [("event-id", b"evt-2")]]


def test_gzip_from_stdin_to_the_topic_of_the_settings_without_keys(kafka: str) -> None:
    topic = made_topic(kafka)
    packed = gzip.compress("\n".join(native(n) for n in range(50)).encode())
    done = subprocess.run(
        [*COMMAND, "-", "--key", "none"], input=packed, capture_output=True, timeout=60,
        env=environ(kafka, GROUNDWATCH__TOPICS__EVENTS=json.dumps([topic])),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = records(kafka, topic)
    assert [json.loads(m.value())["id"] for m in found] == [f"evt-{n}" for n in range(50)]
    assert {m.key() for m in found} == {None}


def test_a_rate_is_kept(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(native(n) for n in range(60)), encoding="utf-8")
    topic = made_topic(kafka)
    done = send(kafka, str(file), "--topic", topic, "--rate", "30")
    assert done.returncode == 0, done.stderr
    times = [m.timestamp()[1] for m in records(kafka, topic)]
    assert 1.7 <= (times[-1] - times[0]) / 1000 <= 3.5
    # Spread over the time, not in bursts: no tenth of it holds more than a fifth of the records.
    assert max(sum(t <= u < t + 200 for u in times) for t in times) <= 20


def test_a_broker_that_is_away_is_said_within_the_timeout(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(native(1), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    done = send(address, str(file), "--timeout", "2")
    assert time.monotonic() - started < 15
    assert done.returncode == 1
    assert f"no answer from the broker at {address}" in done.stderr
    assert len(done.stderr.splitlines()) == 1, "nothing was sent, so nothing is summed up"


def test_a_missing_topic_is_not_created_in_silence(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(native(1), encoding="utf-8")
    done = send(kafka, str(file), "--topic", "nobody.made.this")
    assert done.returncode == 1
    assert "there is no topic nobody.made.this" in done.stderr
    assert "no topic of the settings has that name" in done.stderr
    assert "topics create" not in done.stderr
    assert "0 of 0" not in done.stderr
    assert "nobody.made.this" not in AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=20).topics


def test_a_damaged_file_is_named_with_what_was_sent_before(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl.gz"
    whole = gzip.compress("\n".join(native(n) for n in range(5000)).encode())
    file.write_bytes(whole[: len(whole) * 2 // 3])
    topic = made_topic(kafka)
    done = send(kafka, str(file), "--topic", topic)
    assert done.returncode == 1
    assert "events.jsonl.gz: the gzip data is damaged after line" in done.stderr
    assert "Traceback" not in done.stderr
    assert f"{len(records(kafka, topic)):,} of" in done.stderr


def test_no_such_file_is_one_clear_line() -> None:
    done = send("localhost:1", "/nowhere/events.jsonl")
    assert done.returncode == 2
    assert "'/nowhere/events.jsonl' does not exist" in done.stderr


def test_ctrl_c_reports_what_was_sent(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(native(n) for n in range(1000)), encoding="utf-8")
    topic = made_topic(kafka)
    child = subprocess.Popen(
        [*COMMAND, str(file), "--topic", topic, "--rate", "20"], stderr=subprocess.PIPE, text=True, env=environ(kafka)
    )
    deadline = time.monotonic() + 30
    while not records(kafka, topic):
        assert time.monotonic() < deadline
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=10)
    assert child.returncode == 130, said
    assert "Traceback" not in said
    found = records(kafka, topic)
    assert f"{len(found):,} of {len(found):,} events acknowledged" in said


@pytest.mark.full
def test_a_broker_that_dies_under_way_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(native(n) for n in range(2000)), encoding="utf-8")
    with kafka_cluster(tmp_path / "k") as cluster:
        topic = made_topic(cluster.bootstrap)
        child = subprocess.Popen(
            [*COMMAND, str(file), "--topic", topic, "--rate", "50", "--timeout", "4"],
            stderr=subprocess.PIPE, text=True, env=environ(cluster.bootstrap),
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while not records(cluster.bootstrap, topic):
            assert time.monotonic() < deadline
        cluster.control("kill", "--broker", "1")
        _, said = child.communicate(timeout=30)
    assert child.returncode == 1
    assert "no answer from the broker" in said
    assert "Traceback" not in said


def test_an_empty_file_is_said(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text("\n\n")
    done = send(kafka, str(file), "--topic", made_topic(kafka))
    assert done.returncode == 1
    assert done.stderr == f"Error: {file}: it holds no line, so nothing was sent\n"
