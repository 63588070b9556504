"""The QA service's side: logs events to Kafka, fire and forget.

    client = Client.to("kafka:9092")
    client.log_answer(question, chunks, answer, labels={"app": "hr-helpdesk"})
    client.close()

A call never blocks and never raises into the request: what cannot be queued is dropped and counted.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import logging
import os
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumer import kafka_config
from consumer.settings import Kafka
from metrics.event import Chunk, Event, Turn, encode_event, to_native

Headers = list[tuple[str, str | bytes | None]]

log = logging.getLogger(__name__)

WARNING_SECONDS = 60.0
"""At most one warning in so long."""
_POLL_SECONDS = 0.2
_EXIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Events since the start (of the process, after a fork). logged = delivered + sum(dropped) + waiting."""

    logged: int
    delivered: int
    """Acknowledged by the broker."""
    dropped: Mapping[str, int]
    """By reason: `queue_full`, `too_large`, `invalid`, `undelivered` (the broker was away too long, or refused it),
    `closed` (logged after, or still waiting at, the end), `failed` (anything else)."""
    waiting: int
    """In the queue, or on the way."""


class Client:
    """Logs events to one topic from any number of threads. Make one per process and keep it.

    It survives a fork: the child starts with a client and with counts of its own, and what was waiting in the parent is
    sent by the parent alone (librdkafka's threads do not exist in a child).

    Args:
        kafka: Where and how to connect.
        topic: The topic of the events.
        max_waiting: Events that may wait while the broker is slow or away.
        max_waiting_bytes: Their size together.
        undelivered_seconds: How long an event may wait before it is given up.
        id_header: Name of a record header that carries the event id too (`sampling.id_header` of the scorer).

    Raises:
        KafkaException, KafkaConfigError: the configuration cannot be used. That the broker is away is no error.
    """

    def __init__(
        self,
        kafka: Kafka,
        topic: str,
        *,
        max_waiting: int = 10_000,
        max_waiting_bytes: int = 64_000_000,
        undelivered_seconds: float = 60.0,
        id_header: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self._topic = topic
        self._id_header = id_header
        self._now = now
        self._config = kafka_config.producer(kafka) | {
            "queue.buffering.max.messages": max_waiting,
            "queue.buffering.max.kbytes": max(1, max_waiting_bytes // 1024),
            "delivery.timeout.ms": max(1000, int(undelivered_seconds * 1000)),
            # librdkafka reports a broker that is away ten times a second; `_warn` says it once a minute.
            "log_level": 0,
            "error_cb": self._heard,
        }
        self._open()
        atexit.register(self.close, _EXIT_SECONDS)
        _after_fork(self)

    @classmethod
    def to(cls, bootstrap_servers: str, topic: str = "qa.events") -> Client:
        """With everything else at its default and no encryption."""
        return cls(Kafka(bootstrap_servers=bootstrap_servers), topic)

    def log_answer(
        self,
        question: str | None,
        contexts: Iterable[str | Chunk | Mapping[str, Any]] | None,
        answer: str | None,
        *,
        id: str | None = None,
        reference: str | None = None,
        trace_id: str | None = None,
        conversation: Iterable[Turn | Mapping[str, Any]] = (),
        labels: Mapping[str, str] | None = None,
        feedback: float | None = None,
    ) -> str:
        """Log one answer with the passages that it was given, in the order of retrieval; returns the event's id.

        A passage is its text, a `Chunk`, or a mapping with `text` and, where known, `id`, `score`, `source`; a turn of
        the conversation a `Turn`, or a mapping with `role` and `content`.
        """
        event_id = uuid.uuid4().hex if id is None else str(id)
        try:
            event = Event(
                id=event_id,
                timestamp=self._now(),
                question=question,
                contexts=tuple(_chunk(context) for context in contexts or ()),
                answer=answer,
                reference=reference,
                trace_id=trace_id,
                conversation=tuple(_turn(turn) for turn in conversation),
                labels=dict(labels or {}),
                feedback=feedback,
            )
        except Exception:
            self._logged()
            self._drop("invalid")
            return event_id
        self.log(event)
        return event_id

    def log(self, event: Event) -> None:
        """Log an event as it is."""
        self._logged()
        try:
            value = _encoded(event)
            key = event.id.encode("utf-8", "replace")
            headers: Headers | None = [(self._id_header, key)] if self._id_header else None
        except Exception:
            self._drop("invalid")
            return
        if self._closed.is_set():
            self._drop("closed")
            return
        try:
            self._producer.produce(self._topic, value, key, headers=headers, on_delivery=self._delivered)
        except BufferError:
            self._drop("queue_full")
        except KafkaException as error:
            self._drop("too_large" if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE else "failed")
        except Exception:
            self._drop("failed")

    def counts(self) -> Counts:
        """What became of the events so far."""
        with self._lock:
            lost = sum(self._dropped.values())
            waiting = self._events - self._acknowledged - lost
            return Counts(self._events, self._acknowledged, dict(self._dropped), waiting)

    def close(self, deadline_seconds: float = 5.0) -> Counts:
        """Wait for what is waiting, at most so long, give up the rest, and free the client. May be called twice."""
        atexit.unregister(self.close)
        if self._closed.is_set():
            return self.counts()
        self._closed.set()
        self._poller.join(2 * _POLL_SECONDS)
        try:
            if self._producer.flush(deadline_seconds):
                self._producer.purge(in_queue=True, in_flight=True)
                self._producer.flush(_POLL_SECONDS)
        except Exception:
            log.exception("the client could not be closed in order")
        counts = self.counts()
        if counts.dropped:
            log.warning("events that were not logged: %s", dict(counts.dropped))
        return counts

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _open(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._events = 0
        self._acknowledged = 0
        self._dropped: Counter[str] = Counter()
        self._last_warning = float("-inf")
        self._last_error = ""
        self._producer = Producer(self._config)
        self._poller = threading.Thread(
            target=_poll, args=(self._producer, self._closed), name="groundwatch-client", daemon=True
        )
        self._poller.start()

    def _reopen_in_child(self) -> None:
        closed = self._closed.is_set()
        # Freeing the parent's client here would wait for ever for threads that the child does not have.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._producer))
        self._open()
        if closed:
            self._closed.set()

    def _logged(self) -> None:
        with self._lock:
            self._events += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            with self._lock:
                self._acknowledged += 1
        elif error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            self._drop("closed")
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._drop("too_large")
        else:
            self._drop("undelivered")

    def _drop(self, reason: str) -> None:
        with self._lock:
            self._dropped[reason] += 1
            now = time.monotonic()
            if now - self._last_warning < WARNING_SECONDS:
                return
            self._last_warning = now
            dropped, heard = dict(self._dropped), self._last_error
        log.warning("events are not logged, so far: %s%s", dropped, f" (Kafka: {heard})" if heard else "")

    def _heard(self, error: KafkaError) -> None:
        self._last_error = error.str()


def _poll(producer: Producer, closed: threading.Event) -> None:
    """Serves delivery reports until the log is closed."""
    while not closed.is_set():
        producer.poll(_POLL_SECONDS)


def _after_fork(client: Client) -> None:
    reference = weakref.ref(client)

    def reopen() -> None:
        if (found := reference()) is not None:
            found._reopen_in_child()

    os.register_at_fork(after_in_child=reopen)


def _chunk(context: str | Chunk | Mapping[str, Any]) -> Chunk:
    if isinstance(context, Chunk):
        return context
    if isinstance(context, str):
        return Chunk(context)
    return Chunk(text=context["text"], id=context.get("id"), score=context.get("score"), source=context.get("source"))


def _turn(turn: Turn | Mapping[str, Any]) -> Turn:
    return turn if isinstance(turn, Turn) else Turn(turn["role"], turn["content"])


def _encoded(event: Event) -> bytes:
    try:
        return encode_event(event)
    except TypeError:
        # A lone surrogate (half an emoji from a cut stream) is no reason to lose the event.
        return json.dumps(to_native(event), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
