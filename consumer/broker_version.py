"""Which Kafka a broker is about as new as. No request asks a broker for its version, so its protocol has to tell."""

from __future__ import annotations

import logging
import re
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from consumer import kafka_config
from consumer.settings import Kafka

# Highest version of the Fetch request by release, from the protocol's own history.
_RELEASES = (
    (18, "4.1"),
    (17, "3.9"),
    (16, "3.7"),
    (15, "3.5"),
    (13, "3.1"),
    (12, "2.7"),
    (11, "2.3"),
    (10, "2.1"),
    (8, "2.0"),
)
_FETCH = re.compile(r"ApiKey Fetch \(1\) Versions \d+\.\.(\d+)")


def protocol_level(kafka: Kafka, timeout: float) -> str | None:
    """The newest Kafka release whose Fetch request the broker speaks, e.g. `4.1`; None where it does not say.

    The client tells what a broker supports only in its debug log, so that is read. `timeout` is in seconds.
    """
    heard: list[str] = []
    logger = logging.Logger("broker_version")

    def hear(record: logging.LogRecord) -> bool:
        heard.append(record.getMessage())
        return False

    logger.addFilter(hear)
    try:
        admin = AdminClient(kafka_config.client(kafka) | {"debug": "feature"}, logger=logger)
        admin.list_topics(timeout=timeout)
    except KafkaException:
        return None
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        admin.poll(0.05)
        found = [int(match[1]) for line in heard if (match := _FETCH.search(line))]
        if found:
            return next((release for version, release in _RELEASES if max(found) >= version), "1.1 or older")
    return None
