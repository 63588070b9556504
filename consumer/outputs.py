"""What the scorer writes, and when it counts as written: acknowledged by the broker, or refused for good and counted.

`send` never blocks: what the client's queue cannot take waits here and goes out with the next `serve`. An output that
the broker refuses because of its size is replaced by its next smaller form; the last refusal is counted and ends it.
Everything else that fails is sent again: outputs are idempotent by event id.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from prometheus_client import Counter

from consumer.delivered import Headers

log = logging.getLogger(__name__)

TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
NOT_ALLOWED = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


class OutputImpossible(Exception):
    """An output topic is missing or forbidden: nothing more may be consumed."""


@dataclass(frozen=True, slots=True)
class Output:
    """One record to write. `smaller` gives the next smaller forms, tried in order when the broker refuses the size."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    smaller: Iterator[Output] = field(default_factory=lambda: iter(()))


@dataclass(slots=True)
class _Pending:
    output: Output
    forms: Iterator[Output]
    done: Callable[[], None]
    alone: bool = False


class Outputs:
    """An acknowledged, never-blocking writer.

    `send` may be called from any thread. `serve` runs in the poll thread only; `done` callbacks run inside it.
    """

    def __init__(self, config: dict[str, Any], refused: Counter) -> None:
        self._config = config
        self._producer = Producer(config, logger=logging.getLogger("librdkafka"))
        self._single: Producer | None = None
        self._refused = refused
        self._unsent: deque[_Pending] = deque()
        self._impossible: str | None = None

    def send(self, output: Output, done: Callable[[], None]) -> None:
        """Write `output`; `done` is called once, when it is acknowledged or refused for good."""
        self._unsent.append(_Pending(output, output.smaller, done))

    def serve(self, timeout: float = 0.0) -> None:
        """Hand waiting outputs to the client, and run the callbacks of what was acknowledged.

        Raises:
            OutputImpossible: an output topic is missing or forbidden.
        """
        while self._unsent:
            pending = self._unsent.popleft()
            try:
                self._produce(pending)
            except BufferError:
                self._unsent.appendleft(pending)
                break
        self._producer.poll(timeout)
        if self._single is not None:
            self._single.poll(0.0)
        if self._impossible is not None:
            raise OutputImpossible(self._impossible)

    def abandon(self) -> None:
        """Give up what is not acknowledged, without waiting for a broker that may be gone."""
        self._unsent.clear()
        for producer in (self._producer, self._single):
            if producer is not None:
                producer.purge(in_queue=True, in_flight=True, blocking=False)

    def _produce(self, pending: _Pending) -> None:
        output = pending.output

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                pending.done()
            else:
                self._failed(pending, error)

        producer = self._one_at_a_time() if pending.alone else self._producer
        try:
            producer.produce(
                output.topic, output.value, output.key, headers=list(output.headers), on_delivery=delivered
            )
        except KafkaException as exception:
            self._failed(pending, exception.args[0])

    def _one_at_a_time(self) -> Producer:
        """A client that sends every record in a batch of its own, made when it is first needed."""
        if self._single is None:
            self._single = Producer(self._config | {"batch.num.messages": 1}, logger=logging.getLogger("librdkafka"))
        return self._single

    def _failed(self, pending: _Pending, error: KafkaError) -> None:
        code = error.code()
        if code in TOO_LARGE and not pending.alone:
            # The broker refuses whole batches: this one may be small and merely have had large company.
            pending.alone = True
            self._unsent.append(pending)
        elif code in TOO_LARGE:
            smaller = next(pending.forms, None)
            if smaller is None:
                log.error("%s refused an output for its size, also in its smallest form", pending.output.topic)
                self._refused.labels(pending.output.topic).inc()
                pending.done()
            else:
                pending.output = smaller
                self._unsent.append(pending)
        elif code in NOT_ALLOWED:
            self._impossible = (
                f"cannot write to topic {pending.output.topic}: {error.str()}; create it with "
                "`groundwatch topics create`, or grant the scorer write access"
            )
            self._unsent.append(pending)
        elif code in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            return
        elif error.fatal():
            self._impossible = f"the producer cannot go on: {error.str()}"
        else:
            log.warning("an output to %s was not acknowledged, sending again: %s", pending.output.topic, error.str())
            self._unsent.append(pending)
