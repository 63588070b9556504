"""Reading the score log back: the log is the monitor's state.

A plain consumer, in a thread of its own, reads the records that an earlier process counted: from (now - longest window)
up to the committed offset, the latest hour first, so that a deadline costs the oldest end of the longest window. It
joins no group and commits nothing.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer import kafka_config
from consumer.scorebook import Logged, Restore, Scorebook
from consumer.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 500
CALL_SECONDS = 5.0
QUIET_SECONDS = 3.0
"""After the end of the log was announced, so long without a record before an offset that does not exist is given up."""
STEP_BACK = 10_000
"""Offsets read before the one that a broker names for a time: some answer no finer than a batch. Older records than the
window are left out by their event time, so that this costs some 0.1 s and no exactness."""
CLOCK_SLACK_SECONDS = 120.0
"""A record may be appended a little before its own event time, when clocks differ."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span of log time that has been read, in seconds since the epoch; `end` inf: up to where live reading is."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was read back, by partition. `complete`: nothing is missing. A partition never committed before has
    `committed` None: all of it will be read live. `until`: the log time up to which it is read by now."""

    complete: bool
    records: int
    committed: Mapping[int, int | None]
    spans: Mapping[int, tuple[Span, ...]]
    until: Mapping[int, float]


def filled_ratio(spans: Iterable[Span], seconds: float, now: float, read_until: float) -> float:
    """The share of the last `seconds` that lies in the (disjoint) spans; live reading has come to `read_until`."""
    begin, end = now - seconds, min(now, read_until)
    read = sum(max(0.0, min(span.end, end) - max(span.begin, begin)) for span in spans)
    return min(1.0, read / seconds)


def nothing_read(partitions: Sequence[int], now: float) -> Rebuilt:
    """The windows begin empty at `now`."""
    spans = {p: (Span(now, math.inf),) for p in partitions}
    return Rebuilt(False, 0, dict.fromkeys(partitions), spans, dict.fromkeys(partitions, now))


class Rebuild:
    """One reading back of some partitions of the score topic into a scorebook. `run` blocks: call it in a thread."""

    def __init__(
        self,
        settings: Settings,
        book: Scorebook,
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        stop: threading.Event,
        beat: Callable[[], None],
    ) -> None:
        """`stop` ends it early (the partitions were lost); `beat` is called at least every few seconds."""
        windows = settings.monitor.windows.values()
        self._topic = settings.topics.scores
        self._longest = max(windows)
        shorter = [seconds for seconds in windows if seconds < self._longest]
        self._recent = min(self._longest, max([settings.monitor.dedup_seconds, *shorter]))
        self._book = book
        self._now = now
        self._monotonic = monotonic
        self._deadline = monotonic() + settings.monitor.rebuild_deadline_seconds
        self._stop = stop
        self._beat = beat
        self._records = 0
        self._config = kafka_config.consumer(settings.kafka, settings.monitor.group) | {
            "enable.partition.eof": True,
            # The default would keep more records in memory than all the windows take.
            "queued.max.messages.kbytes": 4096,
            "fetch.message.max.bytes": 1_000_000,
            # By default the client pauses for a second whenever that little is full.
            "fetch.queue.backoff.ms": 5,
        }

    @property
    def stopped(self) -> bool:
        """It was ended early: what it has is of no use."""
        return self._stop.is_set()

    def run(self, partitions: Sequence[int]) -> Rebuilt:
        """Read back what was committed. Ends at the deadline at the latest, and says what it has."""
        began = self._now()
        consumer = Consumer(self._config, logger=logging.getLogger("librdkafka"))
        try:
            log_ = self._until_deadline(lambda: self._log(consumer, partitions, began))
            if log_ is None:
                return nothing_read(partitions, began)
            recent = {p: (known.recent.offset, known.committed or 0) for p, known in log_.items()}
            older = {p: (known.older.offset, known.recent.offset) for p, known in log_.items()}
            newer = self._read(consumer, recent, self._book.restore_recent())
            elder = self._read(consumer, older, self._book.restore_older())
        finally:
            consumer.close()
        return Rebuilt(
            all(piece.done for piece in (*newer.values(), *elder.values())),
            self._records,
            {p: known.committed for p, known in log_.items()},
            {p: _spans(known, elder[p], newer[p], began) for p, known in log_.items()},
            {p: began if known.caught_up else newer[p].last or 0.0 for p, known in log_.items()},
        )

    def committed(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        """The group's committed offsets by partition; None where there is none, or no broker told in time."""
        consumer = Consumer(self._config, logger=logging.getLogger("librdkafka"))
        try:
            found = self._until_deadline(lambda: _committed(consumer, self._topic, partitions))
            return found or dict.fromkeys(partitions)
        finally:
            consumer.close()

    def skip_what_is_too_old(self, partitions: Sequence[int]) -> int:
        """Commit the beginning of the longest window where the group is behind it (or was never there), and say how
        many records that leaves out. They could only be counted as late; reading them live might take hours.
        """
        consumer = Consumer(self._config, logger=logging.getLogger("librdkafka"))
        try:
            log_ = self._log(consumer, partitions, self._now())
            behind = {p: known for p, known in log_.items() if known.older.offset > (known.committed or known.low)}
            if behind:
                offsets = [TopicPartition(self._topic, p, known.older.offset) for p, known in behind.items()]
                consumer.commit(offsets=offsets, asynchronous=False)
            return sum(known.older.offset - (known.committed or known.low) for known in behind.values())
        finally:
            consumer.close()

    def _until_deadline(self, ask: Callable[[], T]) -> T | None:
        """Ask until a broker answers; None at the deadline."""
        while not self._over():
            self._beat()
            try:
                return ask()
            except KafkaException as error:
                log.warning("the score log cannot be read back yet: %s", error)
                self._stop.wait(1.0)
        return None

    def _over(self) -> bool:
        return self._stop.is_set() or self._monotonic() > self._deadline

    def _log(self, consumer: Consumer, partitions: Sequence[int], now: float) -> dict[int, _Known]:
        committed = _committed(consumer, self._topic, partitions)
        known = {}
        for partition in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), CALL_SECONDS)
            end = committed[partition]
            marks = [
                self._mark(consumer, partition, now - seconds - CLOCK_SLACK_SECONDS, low, high if end is None else end)
                for seconds in (self._longest, self._recent)
            ]
            known[partition] = _Known(low, end, (end or 0) >= high, *marks)
        return known

    def _mark(self, consumer: Consumer, partition: int, at: float, low: int, end: int) -> _Mark:
        asked = TopicPartition(self._topic, partition, int(at * 1000))
        found = consumer.offsets_for_times([asked], CALL_SECONDS)[0].offset
        # Below 0: the broker knows no record after that time. The last records before `end` are read all the same.
        offset = min(end if found < 0 else found, end) - STEP_BACK
        return _Mark(max(offset, low, 0), at)

    def _read(self, consumer: Consumer, pieces: Mapping[int, tuple[int, int]], restore: Restore) -> dict[int, _Piece]:
        """Read [begin, end) of each partition, and say how far that came."""
        read = {p: _Piece(begin, end) for p, (begin, end) in pieces.items()}
        open_ = {p: piece for p, piece in read.items() if not piece.done}
        if not open_:
            return read
        consumer.assign([TopicPartition(self._topic, p, piece.position) for p, piece in open_.items()])
        heard = self._monotonic()
        while open_ and not self._over():
            self._beat()
            messages = consumer.consume(BATCH, 0.5)
            records: list[Logged] = []
            for message in messages:
                piece = open_.get(message.partition() or 0)
                if piece is None:
                    continue
                error = message.error()
                if error is None:
                    appended = _appended(message.timestamp(), self._now())
                    if piece.take(message.offset() or 0, appended):
                        records.append((message.value(), appended))
                elif error.code() == KafkaError._PARTITION_EOF:
                    piece.at_end = True
                else:
                    log.warning("reading the score log back: %s", error)
            if records:
                restore(records)
                self._records += len(records)
                heard = self._monotonic()
            quiet = self._monotonic() - heard > QUIET_SECONDS
            open_ = {p: piece for p, piece in open_.items() if not (piece.done or (quiet and piece.give_up()))}
        consumer.unassign()
        return read


@dataclass(frozen=True, slots=True)
class _Mark:
    """An offset at or before the first record appended at time `at` or later."""

    offset: int
    at: float


@dataclass(frozen=True, slots=True)
class _Known:
    low: int
    committed: int | None
    caught_up: bool
    older: _Mark
    recent: _Mark


@dataclass(slots=True)
class _Piece:
    """Part of one partition: `first` and `last` are the append times of what was read, `at_end` the log's end."""

    position: int
    end: int
    first: float | None = None
    last: float | None = None
    at_end: bool = False

    @property
    def done(self) -> bool:
        return self.position >= self.end

    def take(self, offset: int, appended: float) -> bool:
        """True where the record belongs to the piece; one at `end` or later only says that nothing is before it."""
        self.position = offset + 1
        if offset >= self.end:
            return False
        self.at_end = False
        self.last = appended
        if self.first is None:
            self.first = appended
        return True

    def give_up(self) -> bool:
        """At the end of the log, offsets up to `end` do not exist (transaction marks, compaction): all is read."""
        if self.at_end:
            self.position = self.end
        return self.at_end


def _committed(consumer: Consumer, topic: str, partitions: Sequence[int]) -> dict[int, int | None]:
    answers = consumer.committed([TopicPartition(topic, p) for p in partitions], CALL_SECONDS)
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)
    return {answer.partition: answer.offset if answer.offset >= 0 else None for answer in answers}


def _appended(timestamp: tuple[int, int], now: float) -> float:
    """A record's time in the log, in seconds; now, where the broker keeps none."""
    kind, milliseconds = timestamp
    return milliseconds / 1000.0 if kind and milliseconds > 0 else now


def _spans(known: _Known, elder: _Piece, newer: _Piece, began: float) -> tuple[Span, ...]:
    """What has been read of one partition. A log that still begins at offset 0 has nothing before it to be missed."""

    def begin(mark: _Mark, piece: _Piece) -> float:
        if mark.offset > known.low:
            return mark.at
        if known.low == 0 or known.committed is None:
            return -math.inf
        return began if piece.first is None else max(mark.at, piece.first)

    if not newer.done:
        live = Span(began, math.inf)
        return (live,) if newer.last is None else (Span(begin(known.recent, newer), newer.last), live)
    oldest = elder if elder.position > known.older.offset else newer
    if elder.done:
        return (Span(begin(known.older, oldest), math.inf),)
    recent = Span(known.recent.at, math.inf)
    return (recent,) if elder.last is None else (Span(begin(known.older, oldest), elder.last), recent)
