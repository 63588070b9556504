"""May this user read what it must? Asked once at the start, so that a missing right is one line and not a riddle.

A topic that may be described is listed like any other; that it may not be read shows with the first fetch only, and
that a group may not be used with the first look at its offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.settings import Kafka

ANSWER_SECONDS = 3.0


class AccessDenied(Exception):
    """The user lacks a right; the message names it."""


def check_reading(
    kafka: Kafka,
    topic: str,
    partitions: Sequence[int],
    group: str,
    *,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Fetch from the end of the topic and ask for the group's offsets. A broker that does not answer denies nothing.

    Raises:
        AccessDenied: topic or group may not be read by the user of `kafka`.
    """
    consumer = Consumer(
        kafka_config.consumer(kafka, group) | {"enable.partition.eof": True}, logger=logging.getLogger("librdkafka")
    )
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_END) for partition in partitions])
        _listen(consumer, topic, group, monotonic() + ANSWER_SECONDS, monotonic)
        try:
            found = consumer.committed([TopicPartition(topic, partition) for partition in partitions], ANSWER_SECONDS)
            codes = [one.error.code() for one in found if one.error is not None]
        except KafkaException as exception:
            codes = [exception.args[0].code()]
        if KafkaError.GROUP_AUTHORIZATION_FAILED in codes:
            raise AccessDenied(_told(f"group {group}", "use"))
        if codes:  # it waited for a coordinator that nobody may ask for: the client tells that by itself
            _listen(consumer, topic, group, monotonic() + 1.0, monotonic)
    finally:
        consumer.close()


def _listen(consumer: Consumer, topic: str, group: str, until: float, monotonic: Callable[[], float]) -> None:
    """Poll until the end of a partition was reached, or a refusal; at most until then."""
    while monotonic() < until:
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            return
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise AccessDenied(_told(f"topic {topic}", "read"))
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise AccessDenied(_told(f"group {group}", "use"))


def _told(what: str, right: str) -> str:
    return f"Authorization failed: this user may not {right} {what}; grant it (docs/production.md lists all rights)"
