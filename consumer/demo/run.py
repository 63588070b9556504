"""The demo from start to end: services up, traffic on, watch the gauges, tell the story, everything down again."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click
from confluent_kafka import Producer
from rich.console import Console
from rich.live import Live

from consumer import kafka_config
from consumer.case_file import CaseFile
from consumer.client import Client
from consumer.demo.ending import Files, case_pages, command_of, tell_end
from consumer.demo.hearing import Hearing, hearing
from consumer.demo.knowledge import APPS, LANGUAGES, load_documents
from consumer.demo.readings import rolling_scores, scorer_counts, scrape, topic_distances
from consumer.demo.script import ACTS, Fault, Scheduled, incidents, schedule
from consumer.demo.service import HelpDesk
from consumer.demo.services import WINDOWS, Services, services
from consumer.demo.story import Note, Readings, State, Story
from consumer.demo.tally import Tally
from consumer.demo.traffic import Outlets, Sent, drive
from consumer.demo.view import flagged_lines, note_line, plain_line, render

LOOK_SECONDS = 1.0
PLAIN_SECONDS = 5.0
DRAIN_SECONDS = 20.0
CLOSE_SECONDS = 1.0
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Options:
    """`seconds` of traffic, `rate` in records a second."""

    seconds: float
    rate: float
    seed: int
    files: Files


@dataclass(slots=True)
class Watched:
    """What the demo looks at, and what it makes of it. `picture`: the view at the end of the last incident."""

    story: Story
    tally: Tally
    announced: set[Fault]
    picture: tuple[State, tuple[CaseFile, ...]] | None = None


def run_demo(options: Options, environ: Mapping[str, str], console: Console) -> int:
    """Exit code: 0 both incidents were seen, 1 one was not, 130 interrupted.

    Raises:
        DemoError: a worker ended or did not get ready.
        EmbeddedError: the broker or Redis did not start.
        FileUnusable: one of `options.files` cannot be written.
    """
    scheduled = schedule(ACTS, options.seconds)
    sent = Sent()
    story = Story(scheduled, WINDOWS, [f"{app}/{lang}" for app in APPS for lang in LANGUAGES])
    watched = Watched(story, Tally(sent.scripted), set())
    pages: list[str] = []
    code = INTERRUPTED
    try:
        with (
            _one_interrupt() as deaf,
            tempfile.TemporaryDirectory(prefix="groundwatch-demo-") as folder,
            services(Path(folder), environ, console.print) as running,
            hearing(running.settings) as heard,
        ):
            _tell_where(running, console)
            _perform(running, heard, watched, sent, scheduled, options, console)
            pages = case_pages(running, watched.tally, incidents(scheduled), console.width)
            code = 1 if story.missed() else 0
            deaf()
    except KeyboardInterrupt:
        console.print("interrupted")
    console.print("broker, Redis, scorer and monitor are stopped")
    for page in pages:
        click.echo(page)
    tell_end(story, watched.tally, watched.picture, options.files, console)
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
    command = command_of(running)
    lines = (
        ("pages (browser)", f"http://{running.pages_address}/"),
        ("scores", f"http://{running.monitor_address}/metrics"),
        ("counters", f"http://{running.scorer_address}/metrics"),
        ("a gauge", f"curl -s {running.monitor_address}/metrics | grep ^groundwatch_rolling_score{{"),
        ("check everything", f"{command} doctor"),
        ("flagged answers", f"{command} cases"),
        ("topics", f"{command} topics show"),
        ("settings in force", f"{command} settings"),
        ("worker logs", f"{running.file.parent}/scorer.log, monitor.log"),
    )
    console.print("look further while it runs (Ctrl-C ends everything):")
    for what, where in lines:
        console.print(f"  {what:<18} {where}", highlight=False, soft_wrap=True)


def _perform(
    running: Services,
    heard: Hearing,
    watched: Watched,
    sent: Sent,
    scheduled: tuple[Scheduled, ...],
    options: Options,
    console: Console,
) -> None:
    start = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - start

    def look() -> None:
        running.check()
        screen(watched, _look(running, heard, watched, scheduled, elapsed()))

    desk = HelpDesk(load_documents(), options.seed)
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
                look()
                time.sleep(LOOK_SECONDS)
            _drain(watched, lambda: client.counts().delivered + sent.broken, elapsed, look)
        finally:
            stop.set()
            traffic.join(CLOSE_SECONDS)


def _look(
    running: Services, heard: Hearing, watched: Watched, scheduled: tuple[Scheduled, ...], elapsed: float
) -> list[Note]:
    """Read both /metrics and both topics, and tell the story; what is new comes back."""
    scores, counters = scrape(running.monitor_address) or (), scrape(running.scorer_address)
    story, tally = watched.story, watched.tally
    records, cases = heard.new()
    tally.count(records)
    tally.keep(cases)
    counts = None if counters is None else scorer_counts(counters)
    notes = story.observe(elapsed, Readings(rolling_scores(scores), counts, topic_distances(scores)))
    last = incidents(scheduled)[-1]
    if last.start <= elapsed < last.end:
        watched.picture = (story.state(), tally.newest())
    for incident in incidents(scheduled):
        fault = incident.act.fault
        best = tally.best.get(fault)
        if elapsed >= incident.end and best is not None and fault not in watched.announced:
            watched.announced.add(fault)
            tally.settle(fault)
            told = f"{incident.act.name}, explained: {command_of(running)} cases show {best.record.id}"
            notes.append(story.note(told))
    return notes


def _drain(
    watched: Watched, delivered: Callable[[], int], elapsed: Callable[[], float], look: Callable[[], None]
) -> None:
    """Wait until every delivered record is finished and heard, so that the summary's figures add up, and while an
    incident may still be seen."""
    deadline = elapsed() + DRAIN_SECONDS
    while elapsed() < deadline:
        look()
        counts = watched.story.counts
        finished = counts.events >= delivered() and counts.in_flight == 0
        if (
            finished
            and watched.tally.records >= counts.scored + counts.unscored
            and not watched.story.may_see(elapsed())
        ):
            return
        time.sleep(LOOK_SECONDS / 2)


@contextlib.contextmanager
def _outlets(running: Services) -> Iterator[tuple[Outlets, Client]]:
    topic = running.settings.topics.events[0]
    client = Client(running.settings.kafka, topic)
    other_writer = Producer(kafka_config.client(running.settings.kafka) | {"log_level": 0})

    def put_raw(value: bytes | None) -> None:
        other_writer.produce(topic, value=value)
        other_writer.poll(0)

    try:
        yield Outlets(log=client.log, put_raw=put_raw), client
    finally:
        other_writer.flush(CLOSE_SECONDS)
        client.close(CLOSE_SECONDS)


Screen = Callable[[Watched, list[Note]], None]


@contextlib.contextmanager
def _screen(console: Console) -> Iterator[Screen]:
    """A live view on a terminal, else plain lines."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            yield lambda watched, _new: live.update(
                render(watched.story.state(), watched.tally.newest(), console.height), refresh=True
            )
        return
    told = -PLAIN_SECONDS

    def plain(watched: Watched, new: list[Note]) -> None:
        nonlocal told
        state = watched.story.state()
        for note in new:
            console.print(note_line(note), highlight=False, soft_wrap=True)
        if state.elapsed - told >= PLAIN_SECONDS:
            told = state.elapsed
            console.print(plain_line(state), highlight=False, soft_wrap=True)
            for line in flagged_lines(watched.tally.newest()[-1:]):
                console.print(line, soft_wrap=True)

    yield plain
