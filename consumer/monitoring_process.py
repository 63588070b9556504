"""The monitor process, from settings to a running agent and out again."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, ProcessCollector

from consumer import kafka_config
from consumer.access import AccessDenied, check_reading
from consumer.baselines import read_baseline
from consumer.case_reader import keeping_cases
from consumer.case_store import CaseStoreError, open_store
from consumer.change_memory import ChangeMemory
from consumer.health import HealthServer, ListenError, Pulse
from consumer.heap import keep_heap_small
from consumer.label_reader import reading_labels
from consumer.monitor import Monitor, MonitorStopped
from consumer.pages.dead_letters import DeadLetters
from consumer.pages.entry import EntryError
from consumer.pages.listener import serving_pages
from consumer.pages.sources import Looks, Sources
from consumer.rebuild import Rebuild
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from consumer.stopping import MONITOR_STOP_SECONDS, Stopping, leave_after
from metrics.baseline import BaselineError
from metrics.exposition import GuardedCollector

log = logging.getLogger(__name__)

BROKER_SECONDS = 5.0
FAULTS = (
    MonitorStopped, AccessDenied, ListenError, EntryError, CaseStoreError, BaselineError, kafka_config.KafkaConfigError,
)  # fmt: skip
"""What `run` raises with a message for a person."""


def run(settings: Settings, stopping: Stopping) -> None:
    """Monitor until SIGTERM or SIGINT, which `stopping` hears.

    Raises:
        MonitorStopped: the score topic is missing or forbidden, or reading it stands still.
        AccessDenied: the user may not read the score topic, or not use the group.
        ListenError: the metrics address is taken, or the address of the pages is none of this machine's.
        EntryError: the token of the pages cannot be read.
        CaseStoreError: `redis.cases_url` is no URL of a Redis.
        BaselineError: the file `baseline.file` cannot be read.
        KafkaConfigError: the client refuses a property of the settings.
    """
    keep_heap_small(heaps=1)
    kafka_config.check(settings.kafka)
    baseline = None if settings.baseline.file is None else read_baseline(settings.baseline.file)
    own = version("groundwatch")
    pulse = Pulse(time.monotonic)
    threading.excepthook = _thread_ended
    holder: list[Monitor] = []
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(GuardedCollector(lambda: holder[0].collect() if holder else ()))

    def ready() -> tuple[bool, str]:
        return holder[0].ready() if holder else (False, "waiting for Kafka")

    book = Scorebook(settings, time.time, baseline)
    sources = Sources(
        settings,
        own,
        Looks(book, time.monotonic),
        lambda: holder[0].progress() if holder else None,
        ready,
        open_store(settings) if settings.redis.cases_url else None,
        DeadLetters(settings, time.time, time.monotonic).counted,
        baseline,
        time.time,
    )
    with (
        HealthServer(settings.metrics.monitor.listen, registry, healthy=pulse.check, ready=ready) as server,
        serving_pages(sources, pulse, registry, time.monotonic),
    ):
        log.info(
            "groundwatch %s monitor: topic %s, windows %s, group %s, metrics on http://%s/metrics",
            own, settings.topics.scores, ", ".join(settings.monitor.windows), settings.monitor.group, server.address,
        )  # fmt: skip
        partitions = await_topic(settings, pulse)
        check_reading(settings.kafka, settings.topics.scores, partitions, settings.monitor.group)
        pulse.end("start")
        stop = _Stop()
        stopping.started(stop.ask)
        skip_what_is_too_old(settings, book, partitions, stop.asked)
        clocks = {"now": time.time, "monotonic": time.monotonic}
        with (
            keeping_cases(settings, pulse, registry, **clocks),
            reading_labels(settings, book, pulse, registry, **clocks),
        ):
            asyncio.run(_monitor(settings, book, pulse, own, partitions, holder, stop))


class _Stop:
    """Set once, from the thread that hears signals; whatever then holds the process holds it no longer than the
    deadline."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._wakes: Callable[[], object] | None = None
        self._lock = threading.Lock()

    def ask(self) -> None:
        with self._lock:
            if self.asked.is_set():
                return
            self.asked.set()
            leave_after(MONITOR_STOP_SECONDS).start()
            if self._wakes is not None:
                self._wakes()

    def on_asked(self, wake: Callable[[], object]) -> None:
        """Call `wake` when asked, or now where that was before."""
        with self._lock:
            self._wakes = wake
            if self.asked.is_set():
                wake()


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    """The Kafka client's own thread raises when it is stopped while the broker is away: one line, no traceback."""
    name = "?" if ended.thread is None else ended.thread.name
    log.warning("thread %s ended: %s", name, ended.exc_type.__name__)
    log.debug("thread %s ended", name, exc_info=ended.exc_value)


async def _monitor(
    settings: Settings,
    book: Scorebook,
    pulse: Pulse,
    own: str,
    partitions: tuple[int, ...],
    holder: list[Monitor],
    stop: _Stop,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    stop.on_asked(lambda: loop.call_soon_threadsafe(stopping.set))
    if stop.asked.is_set():
        return
    looks = (ChangeMemory(open_store(settings), book).attend,) if settings.redis.cases_url else ()
    monitor = Monitor(
        settings, book, pulse, version=own, partitions=partitions, now=time.time, monotonic=time.monotonic, looks=looks
    )
    holder.append(monitor)
    await monitor.run(stopping)


def await_topic(settings: Settings, pulse: Pulse) -> tuple[int, ...]:
    """Wait for a broker, then insist on the score topic; its partitions.

    Raises:
        MonitorStopped: the topic is missing or forbidden, or the broker refuses the credentials.
    """
    refused: list[str] = []

    def on_error(error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            refused.append(error.str())

    config = kafka_config.client(settings.kafka) | {"error_cb": on_error}
    admin = AdminClient(config, logger=logging.getLogger("librdkafka"))
    name = settings.topics.scores
    while True:
        pulse.beat("start")
        try:
            topic = admin.list_topics(timeout=BROKER_SECONDS).topics.get(name)
        except KafkaException as error:
            admin.poll(0)
            if refused:
                raise MonitorStopped(f"Kafka refused this client: {refused[0]}; check the [kafka] settings") from None
            log.warning("waiting for Kafka at %s: %s", settings.kafka.bootstrap_servers, error.args[0].str())
            time.sleep(1.0)
            continue
        if topic is None or topic.error is not None:
            fault = "missing" if topic is None or topic.error is None else topic.error.str()
            raise MonitorStopped(
                f"the score topic {name} cannot be used: {fault}; run `groundwatch topics create`, or grant access"
            )
        partitions = tuple(sorted(topic.partitions))
        if len(partitions) > 1:
            log.warning(
                "%s has %d partitions: with more than one monitor each shows only a part; make it one partition",
                name, len(partitions),
            )  # fmt: skip
        return partitions


def skip_what_is_too_old(
    settings: Settings, book: Scorebook, partitions: tuple[int, ...], stop: threading.Event
) -> None:
    """Begin at the longest window where the group is behind it; failing that, everything is read, which only takes
    longer."""
    rebuild = Rebuild(settings, book, now=time.time, monotonic=time.monotonic, stop=stop, beat=lambda: None)
    try:
        skipped = rebuild.skip_what_is_too_old(partitions)
    except KafkaException as error:
        log.info("the group's position is left as it is: %s", error.args[0].str())
        return
    if skipped:
        log.warning("skipped %d score records that are older than the longest window", skipped)
