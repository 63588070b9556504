"""The demo without its services: the simulated help desk, the script, detection, summary, view."""

from __future__ import annotations

import io
import itertools
import random
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from consumer.decode import Decoder
from consumer.demo.knowledge import APPS, LANGUAGES, load_documents
from consumer.demo.readings import Counts, Key, Rolling, Sample, fell, rolling_scores, scorer_counts
from consumer.demo.script import ACTS, Fault, current, first_incident, schedule
from consumer.demo.service import HelpDesk, broken_record
from consumer.demo.story import BESIDE, WATCHED, Story
from consumer.demo.traffic import Outlets, Sent, drive
from consumer.demo.view import plain_line, render, sparkline
from consumer.settings import Settings
from metrics.event import Event, encode_event

SEGMENTS = [f"{app}/{lang}" for app in APPS for lang in LANGUAGES]
SCHEDULE = schedule(ACTS, 90.0)


def test_the_help_desk_knows_forty_documents_in_each_language() -> None:
    documents = load_documents()
    assert Counter(d.lang for d in documents) == {"en": 40, "zh": 40}
    assert {d.app for d in documents} == set(APPS)
    assert len({d.text for d in documents}) == len(documents)
    assert all(len(d.asked) >= 2 for d in documents)


@pytest.mark.parametrize("fault", list(Fault))
def test_what_is_logged_is_a_native_event(fault: Fault) -> None:
    desk = HelpDesk(load_documents(), 7)
    decoder = Decoder(Settings().decode)
    for _ in range(200):
        event = desk.handle(fault, 1_760_000_000.0)
        assert decoder.decode(encode_event(event), fallback_id="x", broker_time=None).event == event


def test_wrong_documents_come_from_the_other_application_and_the_answer_stays() -> None:
    apps = {d.id: d.app for d in load_documents()}
    for fault, same_app in ((Fault.NONE, True), (Fault.WRONG_DOCUMENTS, False)):
        desk = HelpDesk(load_documents(), 7)
        for event in (desk.handle(fault, 1.0) for _ in range(200)):
            assert all((apps[chunk.id or ""] == event.labels["app"]) is same_app for chunk in event.contexts)
    calm, faulty = ([HelpDesk(load_documents(), 7).handle(fault, 1.0)] for fault in (Fault.NONE, Fault.WRONG_DOCUMENTS))
    assert calm[0].question == faulty[0].question


def test_the_same_seed_gives_the_same_conversation() -> None:
    def told(seed: int) -> list[Event]:
        desk = HelpDesk(load_documents(), seed)
        return [desk.handle(Fault.NONE, 1.0) for _ in range(50)]

    assert told(3) == told(3)
    assert told(3) != told(4)
    assert len({event.id for event in told(3)}) == 50


def test_broken_records_are_refused_or_ignored() -> None:
    rng = random.Random(1)
    found = {broken_record(rng) for _ in range(100)}
    assert None in found
    assert len(found) > 3


@given(st.floats(60, 100_000))
def test_acts_follow_one_another_without_a_gap(seconds: float) -> None:
    scheduled = schedule(ACTS, seconds)
    assert scheduled[0].start == 0
    assert scheduled[-1].end == seconds
    for before, after in itertools.pairwise(scheduled):
        assert before.start < before.end == after.start
    # The short window must fit into the incident, and leave time before and after.
    incident = first_incident(scheduled)
    assert incident.end - incident.start >= 20
    assert scheduled[-1].end - incident.end >= 15
    assert current(scheduled, incident.start).act.fault is not Fault.NONE
    assert current(scheduled, seconds + 1).act is ACTS[-1]


def test_traffic_follows_the_script_and_counts_what_it_sends() -> None:
    logged: list[Event] = []
    raw: list[bytes | None] = []
    sent = Sent()
    apps = {d.id: d.app for d in load_documents()}
    start = 1_000.0
    drive(
        HelpDesk(load_documents(), 1), Outlets(logged.append, raw.append), SCHEDULE, 20.0, 1, sent,
        threading.Event(), lambda: 1e9, lambda: start,
    )  # fmt: skip
    assert (len(logged), len(raw)) == (sent.events, sent.broken)
    assert sent.records == pytest.approx(90 * 20, rel=0.15)
    assert 0 < len(raw) < 0.04 * sent.records
    wrong = [any(apps[c.id or ""] != e.labels["app"] for c in e.contexts) for e in logged]
    assert wrong.index(True) == pytest.approx(36 * 20, rel=0.15)
    assert not any(wrong[-100:])


def test_a_stop_ends_traffic_at_once() -> None:
    stop = threading.Event()
    stop.set()
    sent = Sent()
    drive(HelpDesk(load_documents(), 1), Outlets(print, print), SCHEDULE, 20.0, 1, sent, stop, lambda: 0.0, lambda: 0.0)
    assert sent.records == 0


def samples(registry: CollectorRegistry) -> list[Sample]:
    text = generate_latest(registry).decode()
    return [Sample(s.name, s.labels, s.value) for f in text_string_to_metric_families(text) for s in f.samples]


def test_readings_come_from_an_exposition() -> None:
    registry = CollectorRegistry()
    labels = ("metric", "window", "definition", "app", "lang")
    for name, value in (("", 0.9), ("_low", 0.88), ("_high", 0.92)):
        gauge = Gauge(f"groundwatch_rolling_score{name}", "x", labels, registry=registry)
        gauge.labels(WATCHED, "15s", "aaaaaaaa", "all", "all").set(value)
        gauge.labels(WATCHED, "15s", "aaaaaaaa", "hr-helpdesk", "zh").set(value - 0.1)
    count = Gauge("groundwatch_rolling_samples", "x", labels, registry=registry)
    count.labels(WATCHED, "15s", "aaaaaaaa", "all", "all").set(42)
    events_in = PrometheusCounter("groundwatch_events_in", "x", ("topic", "partition"), registry=registry)
    ended = PrometheusCounter("groundwatch_events", "x", ("topic", "partition", "outcome"), registry=registry)
    for partition in ("0", "1"):
        events_in.labels("qa.events", partition).inc(10)
        for outcome, n in (("sampled_out", 4), ("ignored", 1), ("scored", 2), ("unscored", 1), ("dead_lettered", 1)):
            ended.labels("qa.events", partition, outcome).inc(n)
    cache = PrometheusCounter("groundwatch_cache_requests", "x", ("cache", "result"), registry=registry)
    for name, result, n in (("memory", "hit", 6), ("memory", "miss", 4), ("redis", "hit", 1), ("redis", "miss", 3)):
        cache.labels(f"embedding_{name}", result).inc(n)
    found = samples(registry)
    assert rolling_scores(found) == {Key(WATCHED, "15s", "all"): Rolling(0.9, 0.88, 0.92, 42)}
    counts = scorer_counts(found)
    assert (counts.events, counts.sampled_out, counts.scored, counts.in_flight) == (20, 8, 4, 2)
    assert (counts.cache_hits, counts.cache_look_ups) == (7, 10)


def rolling(value: float, n: int = 100, sd: float = 0.03) -> Rolling:
    half = 1.96 * sd / n**0.5
    return Rolling(value, value - half, value + half, n)


def test_a_fall_needs_samples_and_more_than_chance() -> None:
    assert fell(rolling(0.9), rolling(0.85))
    assert not fell(rolling(0.9), rolling(0.895))
    assert not fell(rolling(0.9), rolling(0.95))
    assert not fell(rolling(0.9), rolling(0.5, n=29))


def played(drop: float, seed: int) -> Story:
    """The story over readings whose incident lowers the truth by `drop`; noise is that of 100 samples a window."""
    rng = random.Random(seed)
    story = Story(SCHEDULE, ["15s", "60s", "5m"], SEGMENTS)
    incident = first_incident(SCHEDULE)
    for second in range(91):
        inside = max(0.0, min(second, incident.end) - max(incident.start, second - 15.0)) / 15.0
        readings = {}
        for metric in (WATCHED, BESIDE):
            for segment in ["all", *SEGMENTS]:
                readings[Key(metric, "15s", segment)] = rolling(0.9 - drop * inside + rng.gauss(0, 0.003))
                readings[Key(metric, "5m", segment)] = rolling(0.9, n=1000)
        story.observe(float(second), readings, Counts(events=12 * second, sampled_out=6 * second, scored=6 * second))
    return story


def test_the_incident_is_seen_and_calm_traffic_is_not_an_incident() -> None:
    story = played(0.07, 1)
    summary = story.summary()
    assert summary["incident_start"] == 36.0
    assert 0 < summary["incident_seen_seconds"] < 10
    assert summary["rolling_before"][WATCHED]["all"]["value"] == 0.9
    assert summary["rolling_during"][WATCHED]["all"]["value"] < 0.85
    assert set(summary["rolling_during"][WATCHED]) == {"all", *SEGMENTS}
    texts = [note.text for note in story.state().notes]
    assert any("drop seen" in text for text in texts)
    assert any("back at" in text for text in texts)
    # Five lines, 54 looks each at independent noise: by chance 0.1 falls a run would already be many.
    assert sum(played(0.0, seed).seen_at is not None for seed in range(30)) <= 3


@pytest.mark.parametrize("drop", [0.0, 0.07])
def test_the_summary_accounts_for_every_event(drop: float) -> None:
    summary = played(drop, 2).summary()
    parts = ("sampled_out", "ignored", "scored", "unscored", "dead_lettered", "in_flight")
    assert summary["events"] == sum(summary[part] for part in parts) > 0


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_view_shows_every_line_at_any_width(width: int) -> None:
    for story in (Story(SCHEDULE, ["15s", "60s"], SEGMENTS), played(0.07, 1)):
        out = io.StringIO()
        Console(file=out, width=width, force_terminal=False).print(render(story.state()))
        assert max(len(line) for line in out.getvalue().splitlines()) <= width
        assert plain_line(story.state()).count("\n") == 0
    assert "0.9" in out.getvalue()


@given(st.lists(st.floats(-1, 1), max_size=300), st.integers(1, 60))
def test_a_sparkline_never_exceeds_its_width(values: list[float], width: int) -> None:
    line = sparkline(values, -1.0, 1.0, width)
    assert len(line) == min(len(values), width)
    assert set(line) <= set("▁▂▃▄▅▆▇█")
