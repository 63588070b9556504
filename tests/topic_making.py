"""Topics made and read by hand, as a stranger's would be."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def make_topic(bootstrap: str, name: str, partitions: int, **config: str) -> None:
    """Create a topic and return once the broker lists it. `config` takes `cleanup_policy="compact"` and the like."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    properties = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=properties)
    admin.create_topics([topic])[name].result()
    deadline = time.monotonic() + 10
    while name not in admin.list_topics(timeout=5).topics:
        assert time.monotonic() < deadline, f"{name} was created and never listed"
        time.sleep(0.05)


def records(bootstrap: str, topic: str) -> list[Message]:
    """Everything on partition 0 of the topic, read to its end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        start = TopicPartition(topic, 0, 0)
        end = _end_of(consumer, start)
        consumer.assign([start])
        found: list[Message] = []
        deadline = time.monotonic() + 30
        while len(found) < end and time.monotonic() < deadline:
            found += [m for m in consumer.consume(500, timeout=1) if m.error() is None]
        return found
    finally:
        consumer.close()


def _end_of(consumer: Consumer, partition: TopicPartition) -> int:
    """The high watermark; a broker that has just started may not lead the partition yet."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return int(consumer.get_watermark_offsets(partition, timeout=20)[1])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
