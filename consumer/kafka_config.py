"""Client configurations from one `[kafka]` section: librdkafka for the scorer and tools, aiokafka for the monitor."""

from __future__ import annotations

import ssl
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from consumer.settings import Kafka


class KafkaConfigError(Exception):
    """The `[kafka]` section cannot be used; the message says which key and why."""


def password(kafka: Kafka) -> str:
    """The SASL password, from the settings or from its file (a trailing newline is taken off).

    Raises:
        KafkaConfigError: the file cannot be read.
    """
    if kafka.sasl_password_file is not None:
        try:
            return kafka.sasl_password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise KafkaConfigError(f"kafka.sasl_password_file: {error}") from None
    return kafka.sasl_password.get_secret_value()


def client(kafka: Kafka) -> dict[str, Any]:
    """What every librdkafka client of ours shares."""
    config: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol,
        "client.id": "groundwatch",
        # Idle disconnects are normal life; librdkafka would log each as an error.
        "log.connection.close": False,
        "reconnect.backoff.max.ms": 5000,
    }
    if kafka.sasl_mechanism:
        config |= {
            "sasl.mechanism": kafka.sasl_mechanism,
            "sasl.username": kafka.sasl_username,
            "sasl.password": password(kafka),
        }
    files = {
        "ssl.ca.location": kafka.ssl_ca_file,
        "ssl.certificate.location": kafka.ssl_certificate_file,
        "ssl.key.location": kafka.ssl_key_file,
    }
    return config | {name: str(path) for name, path in files.items() if path is not None}


def consumer(kafka: Kafka, group: str) -> dict[str, Any]:
    """A consumer whose offsets move only when we say so, which settings cannot change (settings_rules.py)."""
    return (
        client(kafka)
        | {
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": 10_000,
            "max.poll.interval.ms": 60_000,
            "queued.max.messages.kbytes": 65_536,
            # A full queue is looked at again after this; with the client's own second a busy reader runs dry.
            "fetch.queue.backoff.ms": 10,
            "max.partition.fetch.bytes": 4_000_000,
        }
        | kafka.consumer
        | {"group.id": group, "enable.auto.commit": False, "enable.auto.offset.store": False}
    )


def producer(kafka: Kafka) -> dict[str, Any]:
    """An idempotent producer that waits for all in-sync replicas."""
    return (
        client(kafka)
        | {
            "linger.ms": 20,
            "compression.type": "lz4",
            "message.max.bytes": 8_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "delivery.timeout.ms": 120_000,
        }
        | kafka.producer
        | {"enable.idempotence": True, "acks": "all"}
    )


def check(kafka: Kafka) -> None:
    """Have the client read its properties, without any broker: an unknown one is told before somebody waits for one.

    Raises:
        KafkaConfigError: the client refuses a property of the `[kafka]` section.
    """
    alone = {"bootstrap.servers": "", "log_level": 0}
    try:
        Consumer(consumer(kafka, "groundwatch-check") | alone).close()
    except KafkaException as error:
        raise KafkaConfigError(f"kafka.consumer: {error.args[0].str()}") from None
    try:
        Producer(producer(kafka) | alone)
    except KafkaException as error:
        raise KafkaConfigError(f"kafka.producer: {error.args[0].str()}") from None


def faust_broker(kafka: Kafka) -> tuple[str, Any]:
    """(broker URL, credentials or None) for a Faust app."""
    import faust
    from faust.types.auth import SASLMechanism

    url = ";".join(f"kafka://{server.strip()}" for server in kafka.bootstrap_servers.split(","))
    if kafka.security_protocol == "PLAINTEXT":
        return url, None
    context = ssl.create_default_context(cafile=str(kafka.ssl_ca_file) if kafka.ssl_ca_file else None)
    if kafka.ssl_certificate_file is not None:
        context.load_cert_chain(kafka.ssl_certificate_file, kafka.ssl_key_file)
    if kafka.security_protocol == "SSL":
        return url, faust.SSLCredentials(context)
    return url, faust.SASLCredentials(
        username=kafka.sasl_username,
        password=password(kafka),
        ssl_context=context,
        mechanism=SASLMechanism(kafka.sasl_mechanism),
    )
