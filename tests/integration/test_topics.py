from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from consumer.embedded import embedded_broker, free_port
from consumer.settings import Settings
from consumer.topics import TopicsError, create_topics, inspect_topics, wanted_topics
from tests.topic_making import make_topic


def settings_for(bootstrap: str, **topics: object) -> Settings:
    """Settings with topic names of this test's own."""
    unique = uuid.uuid4().hex[:8]
    names: dict[str, object] = {
        role: f"{unique}.{role}" for role in ("scores", "flagged", "deadletter", "redrive", "labels")
    }
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": bootstrap},
            "topics": names | {"events": (f"{unique}.events",), "partitions": 3} | topics,
        }
    )


def groundwatch(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from consumer.cli import main; main()", *arguments],
        capture_output=True, text=True, timeout=60, env=os.environ | environ,
    )  # fmt: skip


def as_environ(settings: Settings) -> dict[str, str]:
    topics = settings.topics
    return {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": settings.kafka.bootstrap_servers,
        "GROUNDWATCH__TOPICS__EVENTS": f'["{topics.events[0]}"]',
        "GROUNDWATCH__TOPICS__SCORES": topics.scores,
        "GROUNDWATCH__TOPICS__FLAGGED": topics.flagged,
        "GROUNDWATCH__TOPICS__DEADLETTER": topics.deadletter,
        "GROUNDWATCH__TOPICS__REDRIVE": topics.redrive,
        "GROUNDWATCH__TOPICS__LABELS": topics.labels,
        "GROUNDWATCH__TOPICS__PARTITIONS": str(topics.partitions),
    }


def findings(settings: Settings, name: str) -> list[tuple[str, str]]:
    states = {state.wanted.name: state for state in inspect_topics(settings, 5)}
    return [(finding.level, finding.text) for finding in states[name].findings]


def test_topics_are_created_once_with_their_policy(kafka: str) -> None:
    settings = settings_for(kafka)
    topics = settings.topics
    assert sorted(create_topics(settings, 10)) == sorted(topic.name for topic in wanted_topics(settings))
    assert create_topics(settings, 10) == []
    states = {state.wanted.name: state for state in inspect_topics(settings, 10)}
    assert all(state.findings == () for state in states.values())
    assert states[topics.events[0]].partitions == 3
    assert states[topics.redrive].partitions == 3
    assert [states[n].partitions for n in (topics.scores, topics.flagged, topics.labels)] == [1, 1, 1]
    assert states[topics.scores].config["cleanup.policy"] == "delete"
    assert states[topics.scores].config["retention.ms"] == str(30 * 24 * 3_600_000)
    assert states[topics.labels].config["cleanup.policy"] == "compact"
    # The dead letter keeps whatever the decoder was given, so it must fit.
    assert int(states[topics.deadletter].config["max.message.bytes"]) > settings.decode.max_bytes


def test_two_at_once_is_no_error(kafka: str) -> None:
    environ = as_environ(settings_for(kafka))
    command = [sys.executable, "-c", "from consumer.cli import main; main()", "topics", "create"]
    both = [subprocess.Popen(command, env=os.environ | environ, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]


def test_a_topic_that_exists_is_said_and_left_as_it_is(kafka: str) -> None:
    settings = settings_for(kafka)
    events = settings.topics.events[0]
    make_topic(kafka, events, 5, retention_ms="86400000")
    said = groundwatch("topics", "create", **as_environ(settings))
    assert said.returncode == 0, said.stderr
    assert f"{events}: exists partitions=5" in said.stdout
    assert f"note: {events} has 5 partitions (settings say 3); left as it is" in said.stdout
    assert f"note: {events} keeps 24 h (settings say 168 h); left as it is" in said.stdout
    assert findings(settings, events)


@pytest.mark.parametrize(
    ("partitions", "config", "expected"),
    [
        (2, {}, "must have one"),
        (1, {"cleanup_policy": "compact"}, "cleanup.policy is compact"),
        (1, {"cleanup_policy": "delete", "retention_ms": "3600000"}, "less than the longest window of 24 h"),
    ],
)
def test_a_score_topic_that_loses_records_is_refused(
    kafka: str, partitions: int, config: dict[str, str], expected: str
) -> None:
    settings = settings_for(kafka)
    make_topic(kafka, settings.topics.scores, partitions, **config)
    create_topics(settings, 10)
    found = findings(settings, settings.topics.scores)
    assert any(level == "fail" and expected in text for level, text in found), found
    said = groundwatch("topics", "create", **as_environ(settings))
    assert said.returncode == 1
    assert "Traceback" not in said.stderr


def test_size_limited_score_topic_and_deleted_labels_are_warned_about(kafka: str) -> None:
    settings = settings_for(kafka)
    make_topic(kafka, settings.topics.scores, 1, retention_bytes="1000000", retention_ms=str(30 * 24 * 3_600_000))
    make_topic(kafka, settings.topics.labels, 1, cleanup_policy="delete")
    create_topics(settings, 10)
    assert [level for level, _ in findings(settings, settings.topics.scores)] == ["warn"]
    assert [level for level, _ in findings(settings, settings.topics.labels)] == ["warn"]


def test_more_replicas_than_brokers_says_what_to_set(kafka: str) -> None:
    with pytest.raises(TopicsError, match=r"set topics\.replication"):
        create_topics(settings_for(kafka, replication=9), 10)


@pytest.mark.parametrize("action", ["create", "show"])
def test_a_dead_broker_is_one_clear_line_within_seconds(action: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    said = groundwatch("topics", action, "--timeout", "2", GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS=address)
    assert said.returncode == 1
    assert time.monotonic() - began < 10
    assert said.stdout == ""
    assert len(said.stderr.splitlines()) == 1
    assert f"no answer from the broker at {address}" in said.stderr
    assert "Connection refused" in said.stderr


def test_the_embedded_broker_takes_the_same_topics(tmp_path: Path) -> None:
    with embedded_broker(tmp_path / "broker.log") as address:
        settings = settings_for(address)
        assert len(create_topics(settings, 10)) == 6
        assert create_topics(settings, 10) == []
        assert [state.findings for state in inspect_topics(settings, 10)] == [()] * 6
