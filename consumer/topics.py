"""The topics: which there must be and how, created once and inspected. Nothing else in Groundwatch creates a topic."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from consumer import kafka_config
from consumer.logs import one_line
from consumer.settings import Settings

Role = Literal["events", "scores", "flagged", "deadletter", "redrive", "labels"]
ENVELOPE_BYTES = 100_000
"""Room for headers and for what a case file adds to the event's own text."""


class TopicsError(Exception):
    """The broker cannot be reached or refuses; one line that says what to do."""


class BrokerAway(TopicsError):
    """No answer, for a reason that may pass."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it should be. `config` holds broker properties as text."""

    name: str
    role: Role
    partitions: int
    replication: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """`fail`: Groundwatch cannot work with it; `warn`: it can, at a price; `note`: merely not what settings say."""

    level: Literal["note", "warn", "fail"]
    text: str


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is: `partitions` 0 where it does not exist; `config` empty where it cannot be read."""

    wanted: Topic
    partitions: int
    replication: int
    config: Mapping[str, str]
    findings: tuple[Finding, ...]


def wanted_topics(settings: Settings) -> tuple[Topic, ...]:
    """Every topic that the settings name. Scores and case files have one partition: one monitor must see them all."""
    topics = settings.topics
    safe = {"min.insync.replicas": "2" if topics.replication >= 3 else "1"}
    large = {"max.message.bytes": str(settings.decode.max_bytes + ENVELOPE_BYTES)}

    def topic(name: str, role: Role, partitions: int, config: dict[str, str]) -> Topic:
        return Topic(name, role, partitions, topics.replication, safe | config)

    def kept(hours: float) -> dict[str, str]:
        return {"cleanup.policy": "delete", "retention.ms": str(int(hours * 3_600_000))}

    text = kept(topics.events_retention_hours) | large
    original_bytes = kept(topics.deadletter_retention_hours) | large
    return (
        *(topic(name, "events", topics.partitions, text) for name in topics.events),
        topic(topics.scores, "scores", 1, kept(topics.scores_retention_hours)),
        topic(topics.flagged, "flagged", 1, text),
        topic(topics.deadletter, "deadletter", 1, original_bytes),
        topic(topics.redrive, "redrive", topics.partitions, original_bytes),
        topic(topics.labels, "labels", 1, {"cleanup.policy": "compact"}),
    )


def create_topics(settings: Settings, timeout: float) -> list[str]:
    """Create what is missing and return its names, once the brokers know them; what exists is left as it is.

    `timeout` is in seconds, for each of the steps (find out, create, wait).

    Raises:
        BrokerAway: no broker answers.
        TopicsError: the broker refuses a topic or this client.
    """
    with _admin(settings, timeout) as admin:
        there = admin.list_topics(timeout=timeout).topics
        missing = [topic for topic in wanted_topics(settings) if topic.name not in there]
        if not missing:
            return []
        asked = admin.create_topics(
            [
                NewTopic(t.name, num_partitions=t.partitions, replication_factor=t.replication, config=dict(t.config))
                for t in missing
            ],
            request_timeout=timeout,
        )
        created = [topic.name for topic in missing if _was_created(topic, asked[topic.name])]
        _wait_until_known(admin, [topic.name for topic in missing], timeout)
        return created


def inspect_topics(settings: Settings, timeout: float) -> list[TopicState]:
    """What each wanted topic is like, and what is wrong with it.

    Raises:
        TopicsError: the broker is away.
    """
    wanted = wanted_topics(settings)
    with _admin(settings, timeout) as admin:
        there = admin.list_topics(timeout=timeout).topics
        existing = [topic.name for topic in wanted if topic.name in there]
        configs = _configs(admin, existing, timeout)
    states = []
    for topic in wanted:
        partitions = there[topic.name].partitions if topic.name in there else {}
        replication = min((len(p.replicas) for p in partitions.values()), default=0)
        config = configs.get(topic.name, {})
        findings = tuple(_findings(topic, len(partitions), config, settings))
        states.append(TopicState(topic, len(partitions), replication, config, findings))
    return states


def explain(error: KafkaError, heard: Sequence[KafkaError], servers: str) -> str:
    """One line for a person: what the client heard while it tried says more than the time-out at its end."""
    ranked = [
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._RESOLVE,
        KafkaError._TRANSPORT,
    ]
    causes = sorted((e for e in heard if e.code() in ranked), key=lambda e: ranked.index(e.code()))
    cause = re.sub(r" \(after \d+ms in state \w+.*?\)", "", (causes[0] if causes else error).str())
    if causes and causes[0].code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
        advice = "check security_protocol, credentials and certificates in [kafka]"
    else:
        advice = "is it running, and is kafka.bootstrap_servers right?"
    return one_line(f"no answer from the broker at {servers}: {cause}; {advice}")


@contextmanager
def _admin(settings: Settings, timeout: float) -> Iterator[AdminClient]:
    """A client whose failures become `TopicsError`."""
    heard: list[KafkaError] = []

    def hear(error: KafkaError) -> None:
        if len(heard) < 100:
            heard.append(error)

    servers = settings.kafka.bootstrap_servers
    milliseconds = max(1000, int(timeout * 1000))
    try:
        config: dict[str, Any] = kafka_config.client(settings.kafka)
        admin = AdminClient(
            config | {"log_level": 0, "error_cb": hear, "socket.connection.setup.timeout.ms": milliseconds}
        )
    except (KafkaException, kafka_config.KafkaConfigError) as error:
        raise TopicsError(one_line(f"[kafka]: {error.args[0]}")) from None
    try:
        yield admin
    except KafkaException as error:
        admin.poll(0)
        refused = any(e.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) for e in heard)
        fault = TopicsError if refused else BrokerAway
        raise fault(explain(error.args[0], heard, servers)) from None


def _was_created(topic: Topic, future: Any) -> bool:
    try:
        future.result()
    except KafkaException as error:
        fault: KafkaError = error.args[0]
        if fault.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False  # another process was faster
        advice = ""
        if fault.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            advice = "; set topics.replication to at most the number of brokers"
        elif fault.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
            advice = "; this user may not create topics: ask for it, or have the topics made (groundwatch topics show)"
        raise TopicsError(one_line(f"topic {topic.name} was refused: {fault.str()}{advice}")) from None
    return True


def _wait_until_known(admin: AdminClient, names: Sequence[str], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        there = admin.list_topics(timeout=timeout).topics
        unknown = [
            name
            for name in names
            if name not in there or there[name].error or any(p.leader < 0 for p in there[name].partitions.values())
        ]
        if not unknown:
            return
        if time.monotonic() > deadline:
            raise TopicsError(
                f"created, but without a leader after {timeout:.0f} s: {', '.join(unknown)}; look at the broker's log"
            )
        time.sleep(0.1)


def _configs(admin: AdminClient, names: Sequence[str], timeout: float) -> dict[str, dict[str, str]]:
    """Broker properties by topic; a topic whose properties may not be read has none."""
    if not names:
        return {}
    asked = admin.describe_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names], request_timeout=timeout
    )
    configs: dict[str, dict[str, str]] = {}
    for resource, future in asked.items():
        try:
            configs[resource.name] = {key: entry.value for key, entry in future.result().items() if entry.value}
        except KafkaException:
            configs[resource.name] = {}
    return configs


def _findings(topic: Topic, partitions: int, config: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    if not partitions:
        yield Finding("fail", "does not exist; run: groundwatch topics create")
        return
    if partitions != topic.partitions:
        if topic.role in ("scores", "flagged"):
            yield Finding("fail", f"has {partitions} partitions and must have one: make a new topic with one partition")
        else:
            yield Finding("note", f"has {partitions} partitions (settings say {topic.partitions}); left as it is")
    policy = config.get("cleanup.policy")
    if policy is None:
        yield Finding("warn", "its policy and retention cannot be read; check them with the broker's own tools")
        return
    yield from _policy_findings(topic, policy)
    if "delete" in policy:
        yield from _retention_findings(topic, config, settings)


def _policy_findings(topic: Topic, policy: str) -> Iterator[Finding]:
    if topic.role == "labels":
        if "delete" in policy:
            yield Finding("warn", f"cleanup.policy is {policy}: labels will be lost; set cleanup.policy=compact")
    elif "compact" in policy:
        level: Literal["warn", "fail"] = "fail" if topic.role == "scores" else "warn"
        yield Finding(level, f"cleanup.policy is {policy}: records with one key are lost; set cleanup.policy=delete")


def _retention_findings(topic: Topic, config: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    kept_ms = int(config.get("retention.ms", "-1"))
    wanted_ms = int(topic.config.get("retention.ms", "-1"))
    if topic.role == "scores":
        longest = max(settings.monitor.windows.values())
        if 0 <= kept_ms < longest * 1000:
            yield Finding(
                "fail",
                f"keeps {_hours(kept_ms)}, less than the longest window of {_hours(longest * 1000)}: "
                "a restarted monitor could not fill it; raise retention.ms",
            )
            return
        if int(config.get("retention.bytes", "-1")) >= 0:
            yield Finding(
                "warn",
                f"retention.bytes is {config['retention.bytes']}: records may go before the longest window is over",
            )
    if kept_ms != wanted_ms and topic.role != "labels":
        yield Finding("note", f"keeps {_hours(kept_ms)} (settings say {_hours(wanted_ms)}); left as it is")


def _hours(milliseconds: float) -> str:
    return "for ever" if milliseconds < 0 else f"{milliseconds / 3_600_000:g} h"
