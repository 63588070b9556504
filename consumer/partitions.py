"""Partitions coming and going: where reading starts, what was missed, and the last commit before one is given up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from consumer.offsets import Offsets, Partition
from consumer.scorer_metrics import ScorerMetrics

log = logging.getLogger(__name__)

BROKER_SECONDS = 10.0
NORMAL_LIFE = {
    KafkaError._NO_OFFSET,
    KafkaError._STATE,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
}
"""Commit errors of a group that changes: the offsets are committed again by whoever owns them, nothing is wrong."""


def partition_of(tp: TopicPartition) -> Partition:
    return (tp.topic, tp.partition)


class Partitions:
    """The rebalance callbacks and the commits of one consumer. Runs in the poll thread only."""

    def __init__(
        self,
        consumer: Consumer,
        offsets: Offsets,
        metrics: ScorerMetrics,
        *,
        began: Callable[[], None],
        drain: Callable[[Iterable[Partition]], None],
        now: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        """`began()` is told of every assignment; `drain(partitions)` waits, within its own deadline, until their work
        in flight is finished."""
        self._consumer = consumer
        self._offsets = offsets
        self._metrics = metrics
        self._began = began
        self._drain = drain
        self._now = now
        self._wall_clock = wall_clock
        self.advanced_at = now()
        """When a committed offset last moved, on the clock `now`."""
        self.behind = False
        """Whether there was lag when it was last measured."""
        self._committing: dict[Partition, int] = {}
        self.paused = False
        self.ever_assigned = False

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _assigned(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        partitions = [partition_of(tp) for tp in assigned]
        self.ever_assigned = True
        self._began()
        self._offsets.assign(partitions)
        for partition in partitions:
            self._metrics.assigned(partition)
        consumer.incremental_assign(self._starting_points(assigned))
        if self.paused:
            consumer.pause(assigned)
        self._metrics.rebalances.labels("assigned").inc()
        log.info("assigned %s", ", ".join(f"{t}-{p}" for t, p in partitions) or "no new partition")

    def _starting_points(self, assigned: list[TopicPartition]) -> list[TopicPartition]:
        """Where to read from: the committed offset, or the oldest there is where retention (or a re-made topic) has
        taken that away; what is missing is counted and said."""
        try:
            committed = self._consumer.committed(assigned, timeout=BROKER_SECONDS)
            bounds = [self._consumer.get_watermark_offsets(tp, timeout=BROKER_SECONDS) for tp in committed]
        except KafkaException as exception:
            log.warning("cannot compare committed offsets with the topic: %s", exception.args[0].str())
            return assigned
        starts = []
        for tp, bound in zip(committed, bounds, strict=True):
            low, high = bound if bound is not None else (0, 0)
            if tp.offset >= 0 and not low <= tp.offset <= high:
                missing = max(0, low - tp.offset)
                labels = (tp.topic, str(tp.partition))
                self._metrics.offset_resets.labels(*labels).inc()
                self._metrics.events_missing.labels(*labels).inc(missing)
                log.error(
                    "%s-%d: committed offset %d is no longer there (the topic holds %d to %d); going on from the "
                    "oldest, %d events are missing",
                    tp.topic, tp.partition, tp.offset, low, high, missing,
                )  # fmt: skip
                starts.append(TopicPartition(tp.topic, tp.partition, OFFSET_BEGINNING))
            elif tp.offset >= 0:
                starts.append(TopicPartition(tp.topic, tp.partition, tp.offset))
            else:
                starts.append(TopicPartition(tp.topic, tp.partition))
        return starts

    def _revoked(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        partitions = [partition_of(tp) for tp in revoked]
        self._drain(partitions)
        self.commit_now(partitions)
        self._release(partitions, "revoked")
        consumer.incremental_unassign(revoked)

    def _lost(self, consumer: Consumer, lost: list[TopicPartition]) -> None:
        """Expelled from the group: somebody else owns them already, so nothing may be committed."""
        partitions = [partition_of(tp) for tp in lost]
        self._metrics.stale_results.inc(self._offsets.in_flight(partitions))
        self._release(partitions, "lost")
        consumer.incremental_unassign(lost)

    def _release(self, partitions: list[Partition], kind: str) -> None:
        self._offsets.drop(partitions)
        for partition in partitions:
            self._metrics.released(partition)
        self._metrics.rebalances.labels(kind).inc()
        log.info("%s %s", kind, ", ".join(f"{t}-{p}" for t, p in partitions) or "no partition")

    def commit_soon(self) -> None:
        """Commit what moved, without waiting for the broker; the answer comes back in `committed`."""
        moved = self._offsets.to_commit()
        if not moved or self._committing:
            return
        try:
            self._consumer.commit(offsets=_as_offsets(moved), asynchronous=True)
            self._committing = moved
        except KafkaException as exception:
            self._commit_failed(exception.args[0])

    def commit_now(self, partitions: Iterable[Partition] | None = None) -> None:
        """Commit and wait for the broker's answer."""
        moved = self._offsets.to_commit(partitions)
        if not moved:
            return
        try:
            self._consumer.commit(offsets=_as_offsets(moved), asynchronous=False)
            self._offsets.committed(moved)
            self._progress(moved)
        except KafkaException as exception:
            self._commit_failed(exception.args[0])

    def committed(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        """librdkafka's `on_commit`: runs inside a poll."""
        moved, self._committing = self._committing, {}
        if error is not None:
            self._commit_failed(error)
        else:
            self._offsets.committed(moved)
            self._progress(moved)

    def _progress(self, moved: dict[Partition, int]) -> None:
        self.advanced_at = self._now()
        for topic, partition in moved:
            if self._offsets.get((topic, partition)) is not None:
                self._metrics.progress.labels(topic, str(partition)).set(self._wall_clock())

    def _commit_failed(self, error: KafkaError) -> None:
        self._committing = {}
        self._metrics.commit_errors.inc()
        level = logging.DEBUG if error.code() in NORMAL_LIFE else logging.WARNING
        log.log(level, "a commit was not taken, the next one covers it: %s", error.str())

    def pause(self) -> None:
        self._consumer.pause(self._consumer.assignment())
        self.paused = True

    def resume(self) -> None:
        self._consumer.resume(self._consumer.assignment())
        self.paused = False

    def measure_lag(self) -> None:
        """Set the lag gauge of every owned partition from the high watermark that fetching has brought along."""
        self.behind = False
        for (topic, partition), watermark in self._offsets.items():
            bounds = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
            if bounds is not None and bounds[1] >= 0 and watermark.committable >= 0:
                lag = max(0, bounds[1] - watermark.committable)
                self._metrics.lag.labels(topic, str(partition)).set(lag)
                self.behind = self.behind or lag > 0


def _as_offsets(moved: dict[Partition, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in moved.items()]
