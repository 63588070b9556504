"""The topic of labels: writing to it, acknowledged, and reading what stands on it now.

It is compacted and keyed by event id: the last record of an event is its label, and one without a value takes it away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumer import kafka_config
from consumer.deadletter_reading import TopicReader
from consumer.delivered import Delivered
from consumer.label import Label, LabelChange, change_of, encode_label, record_key
from consumer.logs import one_line
from consumer.record import RecordRejected
from consumer.settings import Settings
from consumer.topics import explain

MISSING_SECONDS = 2.0


class LabelsNotWritten(Exception):
    """The broker did not acknowledge them all; one line that says why and what to do. Writing again does no harm."""


class LabelWriter:
    """Writes labels to Kafka. Safe for threads; keep one, or use it as a context manager.

    Raises:
        LabelsNotWritten: the `[kafka]` section cannot be used. That the broker is away shows with the first write.
    """

    def __init__(self, settings: Settings, timeout: float) -> None:
        """`timeout`, in seconds: how long one write may take."""
        self._topic = settings.topics.labels
        self._servers = settings.kafka.bootstrap_servers
        self._timeout = timeout
        self._heard: list[KafkaError] = []
        config = kafka_config.producer(settings.kafka) | {
            "linger.ms": 0,
            "delivery.timeout.ms": max(1000, int(timeout * 1000)),
            "log_level": 0,
            "error_cb": self._hear,
        }
        try:
            self._producer = Producer(config)
        except (KafkaException, kafka_config.KafkaConfigError) as error:
            raise LabelsNotWritten(one_line(f"[kafka]: {error.args[0]}")) from None

    def write(self, changes: Sequence[LabelChange]) -> None:
        """Write all of them, in order, and wait until the broker has acknowledged each.

        Raises:
            LabelsNotWritten: at least one was not.
        """
        answers: list[KafkaError | None] = []

        def done(error: KafkaError | None, _message: Message) -> None:
            answers.append(error)

        for change in changes:
            value = None if change.label is None else encode_label(change.label)
            while True:
                try:
                    self._producer.produce(self._topic, value, record_key(change.id), on_delivery=done)
                    break
                except BufferError:
                    self._producer.poll(0.1)
                except KafkaException as error:
                    raise self._fault(error.args[0]) from None
        self._producer.flush(self._timeout + 1.0)
        refused = [error for error in answers if error is not None]
        if refused:
            raise self._fault(refused[0])
        if len(answers) < len(changes):
            raise self._fault(KafkaError(KafkaError._TIMED_OUT))

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fault(self, error: KafkaError) -> LabelsNotWritten:
        unanswered = error.code() in (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT)
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC) or (
            unanswered and self._is_missing()
        ):
            told = f"there is no topic {self._topic} at {self._servers}; run: groundwatch topics create"
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            told = f"this user may not write to the topic {self._topic}; grant it (docs/production.md lists all rights)"
        elif unanswered:
            told = explain(error, self._heard, self._servers)
        else:
            told = f"the topic {self._topic} at {self._servers} does not take labels: {error.str()}"
        return LabelsNotWritten(one_line(f"not written: {told}"))

    def _is_missing(self) -> bool:
        """The client waits for a topic that is not there as for a broker that does not answer."""
        try:
            return self._topic not in self._producer.list_topics(timeout=MISSING_SECONDS).topics
        except KafkaException:
            return False

    def _hear(self, error: KafkaError) -> None:
        self._heard = [*self._heard[-20:], error]


def current_labels(records: Iterable[Delivered]) -> tuple[dict[str, Label], int]:
    """By event id, the labels that `records` of the topic, in order, leave; and how many of them are none."""
    found: dict[str, Label] = {}
    unread = 0
    for record in records:
        try:
            change = change_of(record.key(), record.value())
        except RecordRejected:
            unread += 1
            continue
        found.pop(change.id, None)
        if change.label is not None:
            found[change.id] = change.label
    return found, unread


def read_labels(reader: TopicReader, settings: Settings) -> Mapping[str, Label]:
    """By event id, every label that stands on the topic now.

    Raises:
        Unreadable: the broker is away, or there is no such topic, or it may not be read.
    """
    return current_labels(reader.records(settings.topics.labels))[0]
