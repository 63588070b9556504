"""Records to one topic, each acknowledged or counted as lost; what `send` and `redrive` write with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from consumer import kafka_config
from consumer.interrupts import Interrupts
from consumer.logs import one_line
from consumer.settings import Settings
from consumer.topics import explain, wanted_topics

SLICE_SECONDS = 0.1
"""How long one wait for the client may last: Ctrl-C and the pace are looked at in between."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class Stalled(Exception):
    """The broker cannot be reached or does not answer; one line that says what to do."""


@dataclass(slots=True)
class Tally:
    asked: int = 0
    """Records handed to the client, and those that could not be."""
    delivered: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Not acknowledged, by what the client or the broker said."""


class Sender:
    """A producer to one topic that counts what is acknowledged, and gives up when nothing is for `timeout` seconds."""

    def __init__(
        self, settings: Settings, topic: str, timeout: float, now: Callable[[], float], interrupts: Interrupts
    ) -> None:
        """Raises `Stalled` where the `[kafka]` section cannot be used."""
        self.topic = topic
        self.tally = Tally()
        self._servers = settings.kafka.bootstrap_servers
        self._ours = topic in [wanted.name for wanted in wanted_topics(settings)]
        self._timeout = timeout
        self._now = now
        self._interrupts = interrupts
        self._heard: list[KafkaError] = []
        self._waiting = 0
        self._progress = now()
        try:
            self._producer = Producer(kafka_config.producer(settings.kafka) | {"log_level": 0, "error_cb": self._hear})
        except (KafkaException, kafka_config.KafkaConfigError) as error:
            raise Stalled(one_line(f"[kafka]: {error.args[0]}")) from None

    def check(self) -> None:
        """Raises `Stalled` where the broker is away or there is no such topic."""
        try:
            with self._interrupts.held():
                there = self._producer.list_topics(timeout=self._timeout).topics
        except KafkaException as error:
            self._producer.poll(0)
            raise Stalled(explain(error.args[0], self._heard, self._servers)) from None
        if self.topic not in there:
            advice = "run: groundwatch topics create" if self._ours else "no topic of the settings has that name"
            raise Stalled(f"there is no topic {self.topic} at {self._servers}; {advice}")

    def put(self, value: bytes, key: bytes | None, headers: list[tuple[str, str | bytes | None]]) -> None:
        """Queue one record; waits while the queue is full. Ctrl-C comes before it is counted or after it is queued."""
        if not self._waiting:
            self._progress = self._now()
        while True:
            try:
                with self._interrupts.held():
                    self._producer.produce(self.topic, value, key, headers=headers, on_delivery=self._done)
                    self._waiting += 1
                    self.tally.asked += 1
            except BufferError:
                self._turn(SLICE_SECONDS)
                continue
            except KafkaException as error:
                self.tally.asked += 1
                self.tally.lost[error.args[0].str()] += 1
                return
            self._turn(0)
            return

    def wait_until(self, due: float) -> None:
        while (left := due - self._now()) > 0:
            self._turn(min(left, SLICE_SECONDS))

    def finish(self) -> None:
        """Wait until every record is acknowledged or refused."""
        while self._waiting:
            self._turn(SLICE_SECONDS)

    def abandon(self) -> None:
        """Give what is on its way two seconds, and up the rest."""
        with suppress(KeyboardInterrupt), self._interrupts.held():
            self._producer.flush(2.0)
        self._producer.purge()
        self._producer.flush(SLICE_SECONDS)

    def _turn(self, seconds: float) -> None:
        with self._interrupts.held():
            self._producer.poll(seconds)
        if self._waiting and self._now() - self._progress > self._timeout:
            unanswered = KafkaError(KafkaError._TIMED_OUT)
            raise Stalled(explain(unanswered, self._heard, self._servers))

    def _done(self, error: KafkaError | None, message: Message) -> None:
        self._waiting -= 1
        self._progress = self._now()
        if error is None:
            self.tally.delivered += 1
        else:
            self.tally.lost[error.str()] += 1

    def _hear(self, error: KafkaError) -> None:
        self._heard = [*self._heard[-20:], error]
