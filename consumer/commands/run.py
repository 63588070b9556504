"""`groundwatch run`: scorer and monitor as two processes under one parent, for small installations and the demo."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import click

from consumer import kafka_config, logs
from consumer.cli import loaded_settings
from consumer.health import ListenError, refuse_multiprocess
from consumer.settings import Settings
from consumer.stopping import MONITOR_STOP_SECONDS, heeded_signals
from consumer.topics import BrokerAway, TopicsError, create_topics

log = logging.getLogger(__name__)

MARGIN_SECONDS = 1.0
"""What a child is given beyond its own deadline before it is killed."""
BROKER_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


@click.command("run")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Create the missing topics, then run scorer and monitor until Ctrl-C; when one ends, both end."""
    with heeded_signals() as stopping:
        settings = loaded_settings(ctx).settings
        logs.configure(settings.logging)
        try:
            refuse_multiprocess(os.environ)
            kafka_config.check(settings.kafka)
            created = _create_topics(settings)
        except (ListenError, TopicsError, kafka_config.KafkaConfigError) as error:
            raise click.ClickException(str(error)) from None
        if created:
            log.info("created the topics %s", ", ".join(created))
        stop = threading.Event()
        stopping.started(stop.set)
        own = [sys.executable, "-m", "consumer"] + ([] if ctx.obj is None else ["--settings", str(ctx.obj)])
        deadline = max(settings.scorer.shutdown_seconds, MONITOR_STOP_SECONDS) + MARGIN_SECONDS
        failed = supervise({name: [*own, name] for name in ("score", "monitor")}, stop, deadline)
    if failed is not None:
        raise click.ClickException(failed)


def _create_topics(settings: Settings) -> list[str]:
    """Create what is missing, as soon as a broker answers."""
    while True:
        try:
            return create_topics(settings, BROKER_SECONDS)
        except BrokerAway as error:
            log.warning("waiting for Kafka: %s", error)
            time.sleep(1.0)


def supervise(commands: Mapping[str, Sequence[str]], stop: threading.Event, stop_seconds: float) -> str | None:
    """Run `commands` (by name) until `stop` is set (None) or one of them ends (which one, and how).

    The others are then told to stop, and killed after `stop_seconds`. They read no terminal signal themselves, and are
    told to stop when this process dies, however it dies (Linux).
    """
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command_line in commands.items():
            children[name] = subprocess.Popen(command_line, start_new_session=True, preexec_fn=_end_with_parent())
        while not stop.wait(0.2):
            for name, child in children.items():
                code = child.poll()
                if code is not None:
                    how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
                    return f"{name} has ended ({how}); see its log above"
        return None
    finally:
        _end(children, stop_seconds)


def _end(children: Mapping[str, subprocess.Popen[bytes]], seconds: float) -> None:
    for child in children.values():
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + seconds
    for name, child in children.items():
        try:
            child.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            log.warning(
                "%s did not stop within %g s and was killed; what was not committed is read again", name, seconds
            )
            child.kill()
            child.wait()


def _end_with_parent() -> Callable[[], None] | None:
    """What a child does before it runs: have the kernel send it SIGTERM when its parent dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
