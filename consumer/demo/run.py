"""The demo from start to end: services up, traffic on, watch the gauges, tell the story, everything down again."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import orjson
from confluent_kafka import Producer
from rich.console import Console
from rich.live import Live

from consumer import kafka_config
from consumer.client import Client
from consumer.demo.knowledge import APPS, LANGUAGES, load_documents
from consumer.demo.readings import rolling_scores, scorer_counts, scrape
from consumer.demo.script import ACTS, Scheduled, first_incident, schedule
from consumer.demo.service import HelpDesk
from consumer.demo.services import WINDOWS, Services, services
from consumer.demo.story import Note, State, Story
from consumer.demo.traffic import Outlets, Sent, drive
from consumer.demo.view import note_line, plain_line, render

LOOK_SECONDS = 1.0
PLAIN_SECONDS = 5.0
DRAIN_SECONDS = 20.0
CLOSE_SECONDS = 1.0
PICTURE_WIDTH = 112
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Options:
    """`seconds` of traffic, `rate` in records a second; `summary` and `picture` are files to write."""

    seconds: float
    rate: float
    seed: int
    summary: Path | None
    picture: Path | None


def run_demo(options: Options, environ: Mapping[str, str], console: Console) -> int:
    """Exit code: 0 the incident was seen, 1 it was not, 130 interrupted.

    Raises:
        DemoError: a worker ended or did not get ready.
        EmbeddedError: the broker or Redis did not start.
    """
    scheduled = schedule(ACTS, options.seconds)
    story = Story(scheduled, list(WINDOWS), [f"{app}/{lang}" for app in APPS for lang in LANGUAGES])
    code = INTERRUPTED
    try:
        with (
            _one_interrupt() as deaf,
            tempfile.TemporaryDirectory(prefix="groundwatch-demo-") as folder,
            services(Path(folder), environ, console.print) as running,
        ):
            _tell_where(running, console)
            _perform(running, story, scheduled, options, console)
            code = 0 if story.seen_at is not None else 1
            deaf()
    except KeyboardInterrupt:
        console.print("interrupted")
    console.print("broker, Redis, scorer and monitor are stopped")
    _tell_end(story, scheduled, options, console)
    return code


@contextlib.contextmanager
def _one_interrupt() -> Iterator[Callable[[], None]]:
    """Ctrl-C or SIGTERM interrupts once; yields what makes this process deaf to more, so that all is ended in order."""

    def deaf() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        deaf()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield deaf
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_where(running: Services, console: Console) -> None:
    command = f"groundwatch --settings {running.file}"
    lines = (
        ("scores", f"http://{running.monitor_address}/metrics"),
        ("counters", f"http://{running.scorer_address}/metrics"),
        ("a gauge", f"curl -s {running.monitor_address}/metrics | grep ^groundwatch_rolling_score{{"),
        ("check everything", f"{command} doctor"),
        ("topics", f"{command} topics show"),
        ("settings in force", f"{command} settings"),
        ("worker logs", f"{running.file.parent}/scorer.log, monitor.log"),
    )
    console.print("look further while it runs (Ctrl-C ends everything):")
    for what, where in lines:
        console.print(f"  {what:<18} {where}", highlight=False, soft_wrap=True)


def _perform(
    running: Services, story: Story, scheduled: tuple[Scheduled, ...], options: Options, console: Console
) -> None:
    start = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - start

    desk = HelpDesk(load_documents(), options.seed)
    sent = Sent()
    stop = threading.Event()
    with _outlets(running) as (outlets, client), _screen(console) as screen:
        traffic = threading.Thread(
            target=drive,
            args=(desk, outlets, scheduled, options.rate, options.seed, sent, stop, elapsed, time.time),
            name="traffic",
            daemon=True,
        )
        traffic.start()
        try:
            while traffic.is_alive():
                running.check()
                new = _look(running, story, elapsed())
                screen(story.state(), new)
                time.sleep(LOOK_SECONDS)
            _drain(running, story, lambda: client.counts().delivered + sent.broken, elapsed, screen)
        finally:
            stop.set()
            traffic.join(CLOSE_SECONDS)


def _look(running: Services, story: Story, elapsed: float) -> list[Note]:
    """Read both /metrics and tell the story; what is new comes back."""
    scores, counters = scrape(running.monitor_address), scrape(running.scorer_address)
    return story.observe(elapsed, rolling_scores(scores or ()), None if counters is None else scorer_counts(counters))


def _drain(
    running: Services, story: Story, delivered: Callable[[], int], elapsed: Callable[[], float], screen: Screen
) -> None:
    """Wait until every delivered record is finished, so that the summary's figures add up."""
    deadline = elapsed() + DRAIN_SECONDS
    while elapsed() < deadline:
        running.check()
        new = _look(running, story, elapsed())
        screen(story.state(), new)
        if story.counts.events >= delivered() and story.counts.in_flight == 0:
            return
        time.sleep(LOOK_SECONDS / 2)


@contextlib.contextmanager
def _outlets(running: Services) -> Iterator[tuple[Outlets, Client]]:
    topic = running.settings.topics.events[0]
    client = Client(running.settings.kafka, topic)
    other_writer = Producer(kafka_config.client(running.settings.kafka))

    def put_raw(value: bytes | None) -> None:
        other_writer.produce(topic, value=value)
        other_writer.poll(0)

    try:
        yield Outlets(log=client.log, put_raw=put_raw), client
    finally:
        other_writer.flush(CLOSE_SECONDS)
        client.close(CLOSE_SECONDS)


Screen = Callable[[State, list[Note]], None]


@contextlib.contextmanager
def _screen(console: Console) -> Iterator[Screen]:
    """A live view on a terminal, else plain lines."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            yield lambda state, _new: live.update(render(state), refresh=True)
        return
    told = -PLAIN_SECONDS

    def plain(state: State, new: list[Note]) -> None:
        nonlocal told
        for note in new:
            console.print(note_line(note), highlight=False, soft_wrap=True)
        if state.elapsed - told >= PLAIN_SECONDS:
            told = state.elapsed
            console.print(plain_line(state), highlight=False, soft_wrap=True)

    yield plain


def _tell_end(story: Story, scheduled: tuple[Scheduled, ...], options: Options, console: Console) -> None:
    summary = story.summary()
    seen = summary["incident_seen_seconds"]
    counts = story.counts
    console.print(
        f"events {counts.events} = sampled out {counts.sampled_out} + ignored {counts.ignored} + scored {counts.scored}"
        f" + unscored {counts.unscored} + dead letters {counts.dead_lettered} + in flight {counts.in_flight}",
        highlight=False,
    )
    if seen is not None:
        console.print(f"the incident was seen {seen:.1f} s after it began", highlight=False)
    elif story.state().elapsed >= first_incident(scheduled).end:
        console.print("the incident was NOT seen in the gauges", highlight=False)
    if options.summary is not None:
        options.summary.write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
        console.print(f"summary: {options.summary}", highlight=False)
    if options.picture is not None and story.incident_state is not None:
        paper = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
        paper.print(render(story.incident_state))
        drawn = paper.export_svg(title="groundwatch demo")
        # Rich names fonts on somebody's server; a picture must not load anything.
        options.picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")
        console.print(f"picture: {options.picture}", highlight=False)
