"""`groundwatch monitor`: the monitor process, from settings to a running agent and out again."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from importlib.metadata import version

import click
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry

from consumer import kafka_config, logs
from consumer.case_reader import keeping_cases
from consumer.case_store import CaseStoreError
from consumer.cli import loaded_settings
from consumer.health import HealthServer, ListenError, Pulse
from consumer.monitor import Monitor, MonitorStopped
from consumer.rebuild import Rebuild
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from metrics.exposition import GuardedCollector

log = logging.getLogger(__name__)

BROKER_SECONDS = 5.0


@click.command("monitor")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Turn score records into rolling gauges on /metrics (the monitor)."""
    settings = loaded_settings(ctx).settings
    logs.configure(settings.logging)
    try:
        run(settings)
    except (MonitorStopped, ListenError, CaseStoreError, kafka_config.KafkaConfigError) as error:
        raise click.ClickException(str(error)) from None
    except KafkaException as error:
        raise click.ClickException(f"kafka: {error.args[0].str()}") from None


def run(settings: Settings) -> None:
    """Monitor until SIGTERM or SIGINT.

    Raises:
        MonitorStopped: the score topic is missing or forbidden, or reading it stands still.
        ListenError: the metrics address is taken.
        CaseStoreError: `redis.cases_url` is no URL of a Redis.
    """
    own = version("groundwatch")
    pulse = Pulse(time.monotonic)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.excepthook = _thread_ended
    holder: list[Monitor] = []
    registry = CollectorRegistry(auto_describe=False)
    registry.register(GuardedCollector(lambda: holder[0].collect() if holder else ()))

    def ready() -> tuple[bool, str]:
        return holder[0].ready() if holder else (False, "waiting for Kafka")

    with HealthServer(settings.metrics.monitor.listen, registry, healthy=pulse.check, ready=ready) as server:
        log.info(
            "groundwatch %s monitor: topic %s, windows %s, group %s, metrics on http://%s/metrics",
            own, settings.topics.scores, ", ".join(settings.monitor.windows), settings.monitor.group, server.address,
        )  # fmt: skip
        partitions = await_topic(settings, stop, pulse)
        pulse.end("start")
        if stop.is_set():
            return
        book = Scorebook(settings, time.time)
        skip_what_is_too_old(settings, book, partitions, stop)
        with keeping_cases(settings, pulse, registry, now=time.time, monotonic=time.monotonic):
            asyncio.run(_monitor(settings, book, pulse, own, partitions, holder, stop))


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
    stop: threading.Event,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if stop.is_set():
        return
    monitor = Monitor(
        settings, book, pulse, version=own, partitions=partitions, now=time.time, monotonic=time.monotonic
    )
    holder.append(monitor)
    await monitor.run(stopping)


def await_topic(settings: Settings, stop: threading.Event, pulse: Pulse) -> tuple[int, ...]:
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
    while not stop.is_set():
        pulse.beat("start")
        try:
            topic = admin.list_topics(timeout=BROKER_SECONDS).topics.get(name)
        except KafkaException as error:
            admin.poll(0)
            if refused:
                raise MonitorStopped(f"Kafka refused this client: {refused[0]}; check the [kafka] settings") from None
            log.warning("waiting for Kafka at %s: %s", settings.kafka.bootstrap_servers, error.args[0].str())
            stop.wait(1.0)
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
    return ()


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
