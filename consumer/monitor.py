"""The monitor: a Faust agent over the score log, the reading back of that log, and what /metrics shows of both.

Faust tables are not used (their recovery is a known source of stuck workers): the log itself is the state. Topics are
raw bytes, decoded in the scorebook, because a decode error inside Faust can end an agent in silence.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Consumer, KafkaException
from faust.types import TP
from prometheus_client.core import GaugeMetricFamily, Metric

from consumer import kafka_config
from consumer.attending import attending, given_up
from consumer.bundles import Record
from consumer.explaining import Explainer
from consumer.faust_app import SESSION_SECONDS, build_app
from consumer.health import Pulse
from consumer.heap import give_heap_back
from consumer.positions import Delivery, Positions
from consumer.rebuild import Rebuild, Rebuilt, filled_ratio, nothing_read
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from consumer.watch import Offsets, Watch, ask_offsets
from metrics.drift_exposition import change_families, drift_families
from metrics.exposition import PREFIX, Exposition, Progress, Rolled, definition_info, definition_since
from metrics.label_exposition import corrected_families

log = logging.getLogger(__name__)

STILL_SECONDS = 60.0
"""How long reading or committing may stand still while records wait, before the process ends to be started anew."""
WATCH_SECONDS = 5.0
CURRENT_SECONDS = 15.0
"""A partition whose latest record is this fresh, or that was read to its end so lately, is read up to now."""
STOP_SECONDS = 7.0
COMMIT_SECONDS = 1.5
AGENT = "agent"


class MonitorStopped(Exception):
    """The monitor cannot go on; the message says why."""


@dataclass(slots=True)
class _Owned:
    """What is known of the partitions that are assigned here."""

    partitions: tuple[int, ...]
    rebuilt: Rebuilt | None = None


class Monitor:
    """One monitor process. `run` ends when `stop` is set, or raises."""

    def __init__(
        self,
        settings: Settings,
        book: Scorebook,
        pulse: Pulse,
        *,
        version: str,
        partitions: tuple[int, ...],
        now: Callable[[], float],
        monotonic: Callable[[], float],
        looks: tuple[Callable[[], None], ...] = (),
    ) -> None:
        """`partitions`: all that the score topic has. `now` is wall-clock time, `monotonic` measures waiting. `looks`
        are called every few seconds, each in a thread, while this monitor is the active one."""
        self._settings = settings
        self._book = book
        self._pulse = pulse
        self._partitions = partitions
        self._now = now
        self._monotonic = monotonic
        self._looks = looks
        self._exposition = Exposition(book.segment_keys, version)
        self._watch = Watch(STILL_SECONDS, settings.monitor.rebuild_deadline_seconds + STILL_SECONDS)
        self._offsets: Offsets | None = None
        self._owned: _Owned | None = None
        self._joined = False
        self._ready = asyncio.Event()
        self._abort = threading.Event()
        self._rebuilding: asyncio.Task[None] | None = None
        self._agent_runs = False
        # These outlive a rebalance: what was read back, how far each partition is counted, and up to which log time.
        self._reading = threading.Lock()
        self._kept: Rebuilt | None = None
        self._positions = Positions()
        self._current: dict[int, float] = {}

    def collect(self) -> Iterator[Metric]:
        """All families, for a scrape; called in the listener's thread."""
        now = self._now()
        owned = self._owned
        rebuilt = None if owned is None else owned.rebuilt
        progress = self._progress(owned, now)
        yield from self._exposition.progress(progress)
        yield from self._lag()
        with self._book.opened() as (rolling, counting):
            if rebuilt is not None:
                readings, shares = rolling.read(now)
                counting.keep(rolling.definitions)
            else:
                readings, shares = [], []
            counters = list(self._exposition.counters(counting))
            counters += [definition_info(rolling.definitions), definition_since(rolling.definitions)]
        yield from self._exposition.rolling(Rolled(readings, shares), progress)
        yield from corrected_families(*self._book.corrected(readings, shares), self._book.segment_keys)
        yield from self._exposition.thresholds(self._book.thresholds() if rebuilt is not None else ())
        yield from counters
        yield from change_families(*self._book.change_counts(), self._book.segment_keys)
        yield from drift_families(self._book.drift() if rebuilt is not None else (), self._book.segment_keys)

    def progress(self) -> Progress:
        """How far this monitor is; may be called from any thread."""
        return self._progress(self._owned, self._now())

    def _progress(self, owned: _Owned | None, now: float) -> Progress:
        rebuilt = None if owned is None else owned.rebuilt
        filled = {} if rebuilt is None else self._filled(rebuilt, now)
        return Progress(owned is not None, rebuilt is not None, filled, self._settings.monitor.coverage_minimum)

    def ready(self) -> tuple[bool, str]:
        """For /readyz: joined the group, and either a standby or done with reading back."""
        owned = self._owned
        if not self._joined:
            return False, "joining the group"
        if owned is None:
            return True, "standby: another monitor owns the score topic"
        if owned.rebuilt is None:
            return False, "reading the score log back"
        return True, "active"

    async def run(self, stop: asyncio.Event) -> None:
        """Read scores until `stop` is set.

        Raises:
            MonitorStopped: reading or committing stands still, or Faust gave up.
        """
        with tempfile.TemporaryDirectory(prefix="groundwatch-monitor-") as scratch:
            app = build_app(self._settings, scratch)
            topic = app.topic(
                self._settings.topics.scores,
                key_type=bytes,
                value_type=bytes,
                key_serializer="raw",
                value_serializer="raw",
                acks=False,
            )
            app.agent(topic, name="scores")(self._agent)
            app.on_partitions_assigned.connect(self._assigned)
            app.on_partitions_revoked.connect(self._revoked)
            explainer = Explainer(self._settings, self._book, self._now, stop.is_set)
            looks = (self._book.attend, explainer.attend, *self._looks)
            statistics = asyncio.gather(*(attending(look, self._rebuilt, stop) for look in looks))
            try:
                await app.start()
                await self._attend(app, stop)
            finally:
                self._abort.set()
                await given_up(statistics)
                self._pulse.end(AGENT)
                try:
                    await self._commit_in_time(app)
                    await asyncio.wait_for(app.stop(), STOP_SECONDS)
                except TimeoutError:
                    log.warning("the Kafka client did not stop within %g s", STOP_SECONDS)

    def _rebuilt(self) -> bool:
        return self._owned is not None and self._owned.rebuilt is not None

    async def _attend(self, app: Any, stop: asyncio.Event) -> None:
        """Turn once a second: keep the pulse, ask the broker now and then, and end what does not work any more."""
        config = kafka_config.consumer(self._settings.kafka, self._settings.monitor.group)
        beside = Consumer(config, logger=logging.getLogger("librdkafka"))
        asked, asking = self._monotonic(), None
        died: float | None = None
        committing = asyncio.create_task(self._commit(app))
        while not stop.is_set():
            if app.crashed:
                raise MonitorStopped("Faust gave up; see the log above")
            now = self._monotonic()
            if self._agent_runs:
                self._pulse.beat(AGENT)
                died = None
            elif self._joined:
                died = now if died is None else died
                if now - died > SESSION_SECONDS:
                    raise MonitorStopped("the agent that reads scores has ended")
            if committing.done():
                committing = asyncio.create_task(self._commit(app))
            if asking is None and now - asked >= WATCH_SECONDS:
                asked, asking = now, asyncio.create_task(asyncio.to_thread(self._ask, beside))
            elif asking is not None and asking.done():
                fault, asking = self._judge(now, asking.result()), None
                if fault is not None:
                    raise MonitorStopped(fault)
            try:
                await asyncio.wait_for(stop.wait(), 1.0)
            except TimeoutError:
                continue

    async def _commit(self, app: Any) -> None:
        """Commit what is counted of the partitions that are owned and read back."""
        owned = self._owned
        if owned is None or owned.rebuilt is None:
            return
        offsets = self._positions.uncommitted(owned.partitions)
        topic = self._settings.topics.scores
        if offsets and await app.consumer._commit({TP(topic, p): o for p, o in offsets.items()}):
            self._positions.committed(offsets)

    async def _commit_in_time(self, app: Any) -> None:
        """Before the partitions are given up: what is not committed is only read twice."""
        try:
            await asyncio.wait_for(self._commit(app), COMMIT_SECONDS)
        except TimeoutError:
            log.warning("the last offsets were not committed; the next owner reads them again")

    def _ask(self, beside: Consumer) -> Offsets | None:
        try:
            return ask_offsets(beside, self._settings.topics.scores, self._partitions)
        except KafkaException as error:
            log.debug("the broker does not tell its offsets: %s", error)
            return None

    def _judge(self, now: float, offsets: Offsets | None) -> str | None:
        self._offsets = offsets
        owned = self._owned
        if owned is not None and offsets is not None:
            for partition in owned.partitions:
                if self._positions.next.get(partition, 0) >= offsets.ends.get(partition, 0):
                    self._current[partition] = self._now()
        if offsets is None or (owned is not None and owned.rebuilt is None):
            self._watch.forget()
            return None
        positions = None if owned is None else {p: o for p, o in self._positions.next.items() if p in owned.partitions}
        return self._watch.verdict(now, offsets, positions)

    async def _agent(self, stream: Any) -> None:
        self._agent_runs = True
        try:
            async for event in stream.events():
                if not self._ready.is_set():
                    await self._ready.wait()
                if event.message.generation_id == stream.app.consumer_generation_id:
                    await self._take(stream.app, event.message.partition, event.value.records)
        finally:
            self._agent_runs = False

    async def _take(self, app: Any, partition: int, records: Sequence[Record]) -> None:
        positions = self._positions
        delivery = positions.judge(partition, records[0].offset)
        if delivery is Delivery.AHEAD:
            log.warning(
                "offsets %d to %d were not delivered; asking again", positions.next[partition], records[0].offset - 1
            )
            await app.consumer.seek(TP(self._settings.topics.scores, partition), positions.next[partition])
        if delivery is not Delivery.IN_ORDER:
            return
        for record in records:
            if not positions.counted_before(partition, record.offset):
                self._book.count(record.value, record.appended)
                positions.counted(partition, record.offset)
        appended = records[-1].appended
        self._current[partition] = self._now() if appended is None else appended

    async def _assigned(self, _app: Any, assigned: Any, **_kwargs: Any) -> None:
        """Called by Faust after every rebalance; it must not take long, or the group waits."""
        topic = self._settings.topics.scores
        partitions = tuple(sorted(tp.partition for tp in assigned if tp.topic == topic))
        self._joined = True
        self._watch.forget()
        if not partitions:
            log.info("standby: another monitor owns the score topic")
            return
        owned = self._owned = _Owned(partitions)
        self._abort = threading.Event()
        self._rebuilding = asyncio.create_task(self._restore(owned, self._abort))

    async def _revoked(self, app: Any, _revoked: Any, **_kwargs: Any) -> None:
        """The partitions are lost, or about to be given out anew: nothing is shown until that is known."""
        await self._commit_in_time(app)
        self._ready.clear()
        self._abort.set()
        self._owned = None
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            self._rebuilding = None

    async def _restore(self, owned: _Owned, abort: threading.Event) -> None:
        rebuild = Rebuild(
            self._settings,
            self._book,
            now=self._now,
            monotonic=self._monotonic,
            stop=abort,
            beat=lambda: self._pulse.beat("rebuild"),
        )
        began = self._monotonic()
        try:
            rebuilt = await asyncio.to_thread(self._read_back, rebuild, owned.partitions)
        except Exception:
            log.exception("reading the score log back failed; windows begin empty")
            rebuilt = nothing_read(owned.partitions, self._now())
        self._pulse.end("rebuild")
        if abort.is_set():
            return
        owned.rebuilt = rebuilt
        self._ready.set()
        log.info(
            "score log read back: %d records in %.1f s%s",
            rebuilt.records,
            self._monotonic() - began,
            "" if rebuilt.complete else ", incomplete: the deadline passed (see window_filled_ratio)",
        )

    def _read_back(self, rebuild: Rebuild, partitions: tuple[int, ...]) -> Rebuilt:
        """Keep the state where the partitions came back and nobody read on meanwhile; else read the log back."""
        with self._reading:
            kept = self._kept
            if kept is not None and self._positions.cover(partitions) and set(kept.spans) == set(partitions):
                committed = rebuild.committed(partitions)
                if all((committed[p] or 0) <= offset for p, offset in self._positions.next.items()):
                    self._positions.resume(committed)
                    return replace(kept, records=0, committed=committed)
            self._kept = None
            self._positions.forget()
            self._current.clear()
            self._book.reset()
            rebuilt = rebuild.run(partitions)
            if rebuild.stopped:
                return rebuilt
            self._book.restored()
            give_heap_back()
            self._positions.begin(rebuilt.committed)
            self._current.update(rebuilt.until)
            self._kept = rebuilt
            return rebuilt

    def _filled(self, rebuilt: Rebuilt, now: float) -> dict[str, float]:
        """By window, the share of its span that has been read; the mean over partitions."""
        filled = {}
        for name, seconds in self._settings.monitor.windows.items():
            shares = []
            for partition, spans in rebuilt.spans.items():
                current = self._current.get(partition, 0.0)
                until = now if now - current < CURRENT_SECONDS else current
                shares.append(filled_ratio(spans, seconds, now, until))
            filled[name] = sum(shares) / len(shares)
        return filled

    def _lag(self) -> Iterator[Metric]:
        """Per owned partition: what waits to be read, and what was read and waits to be committed."""
        labels = ["topic", "partition"]
        lag = GaugeMetricFamily(f"{PREFIX}monitor_lag_records", "Score records that wait to be read.", labels=labels)
        uncommitted = GaugeMetricFamily(
            f"{PREFIX}monitor_uncommitted_records", "Score records read, but not committed yet.", labels=labels
        )
        owned, offsets = self._owned, self._offsets
        if owned is not None and offsets is not None:
            for partition in owned.partitions:
                position, end = self._positions.next.get(partition), offsets.ends.get(partition)
                if position is not None and end is not None:
                    values = [self._settings.topics.scores, str(partition)]
                    lag.add_metric(values, max(0, end - position))
                    uncommitted.add_metric(values, max(0, position - offsets.committed.get(partition, 0)))
        yield lag
        yield uncommitted
