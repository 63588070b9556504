"""A score log of a test's own on a real broker, and monitors over it as child processes."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.embedded import free_port
from consumer.record import ScoreRecord, encode_record
from consumer.settings import Settings
from tests.processes import Running, groundwatch
from tests.score_records import score_record

ALL = {"app": "all", "lang": "all"}
ALLOW = {"app": ["helpdesk", "shop"], "lang": ["en", "zh"]}


@dataclass
class ScoreLog:
    """One score topic and one monitor group."""

    bootstrap: str
    partitions: int = 1
    topic: str = field(default_factory=lambda: f"scores-{uuid.uuid4().hex[:8]}")
    group: str = field(default_factory=lambda: f"monitor-{uuid.uuid4().hex[:8]}")

    def create(self) -> ScoreLog:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result()
        return self

    def produce(self, *values: ScoreRecord | bytes | None, codec: str = "lz4", at: float | None = None) -> None:
        """Append, acknowledged; `at` sets the broker's timestamps (seconds)."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "compression.type": codec, "linger.ms": 20})
        refused: list[object] = []
        for value in values:
            raw = encode_record(value) if isinstance(value, ScoreRecord) else value
            timestamp = 0 if at is None else int(at * 1000)
            producer.produce(
                self.topic,
                raw,
                key=b"k",
                timestamp=timestamp,
                on_delivery=lambda e, _: refused.append(e) if e else None,
            )
            producer.poll(0)
        assert producer.flush(30) == 0
        assert not refused, refused

    def end(self) -> int:
        with contextlib.closing(Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group})) as consumer:
            return int(consumer.get_watermark_offsets(TopicPartition(self.topic, 0), 10)[1])

    def committed(self) -> int:
        """The group's committed offset of partition 0; -1001 where there is none."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        asked = [ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, 0)])]
        found = admin.list_consumer_group_offsets(asked)[self.group].result().topic_partitions
        return int(found[0].offset) if found else -1001

    def environment(self, address: str, **sections: dict[str, object]) -> dict[str, str]:
        values: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap_servers": self.bootstrap},
            "topics": {"scores": self.topic},
            "monitor": {"group": self.group},
            "segments": {"allow": ALLOW},
        }
        environment = {"GROUNDWATCH__METRICS__MONITOR__LISTEN": address}
        for section in values.keys() | sections.keys():
            for key, value in (values.get(section, {}) | sections.get(section, {})).items():
                text = value if isinstance(value, str) else orjson.dumps(value).decode()
                environment[f"GROUNDWATCH__{section}__{key}".upper()] = text
        return environment

    def settings(self, **monitor: object) -> Settings:
        return Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": self.bootstrap},
                "topics": {"scores": self.topic},
                "monitor": {"group": self.group, **monitor},
                "segments": {"allow": ALLOW},
            }
        )

    @contextlib.contextmanager
    def monitor(self, folder: Path, name: str = "monitor", **sections: dict[str, object]) -> Iterator[Running]:
        address = f"127.0.0.1:{free_port()}"
        environment = self.environment(address, **sections)
        with groundwatch("monitor", address, folder / f"{name}.log", environment) as running:
            yield running


def is_active(monitor: Running) -> bool:
    """Owns the topic, and has read it back."""
    return answers(monitor, "/readyz") == (200, "active\n")


def is_standby(monitor: Running) -> bool:
    status, text = answers(monitor, "/readyz")
    return status == 200 and text.startswith("standby")


def answers(monitor: Running, path: str) -> tuple[int, str]:
    """Status and text; (0, "") while the listener is not up. A process that has ended fails the test."""
    assert monitor.process.poll() is None, monitor.log.read_text()[-3000:]
    try:
        return monitor.get(path)
    except OSError:
        return 0, ""


def gauge(monitor: Running, name: str, **labels: str) -> float | None:
    found = [value for own, value in monitor.samples().get(f"groundwatch_{name}", []) if labels.items() <= own.items()]
    assert len(found) <= 1, found
    return found[0] if found else None


def rolling(monitor: Running) -> dict[tuple[str, ...], float]:
    """All rolling series and their values, for comparison."""
    return {
        (name, *(f"{k}={v}" for k, v in sorted(labels.items()))): value
        for name, samples in monitor.samples().items()
        if name.startswith("groundwatch_rolling_")
        for labels, value in samples
    }


def read_total(monitor: Running) -> float:
    """Score records read, whatever became of them."""
    return monitor.total("groundwatch_scores_read_total")


def varied(numbers: Iterable[int], now: float) -> list[ScoreRecord]:
    """Records of several segments, weights and metrics, spread over the last 200 s."""
    return [
        score_record(
            i,
            now - (i * 7) % 200,
            {"faithfulness": (i % 6) / 5, "topic_similarity": 0.95 - (i % 40) / 100},
            probability=(1.0, 0.3, 0.05, 1 / 7)[i % 4],
            segment={"app": ("helpdesk", "shop")[i % 3 == 0], "lang": ("en", "zh")[i % 2]},
            trace_id=f"trace-{i}",
        )
        for i in numbers
    ]
