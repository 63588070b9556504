"""The demo without its services: the simulated help desk, the script, detection, summary, view."""

from __future__ import annotations

import io
import itertools
import json
import random
import re
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from consumer.case_filter import CaseFilter
from consumer.case_lines import CaseLines
from consumer.cli import group
from consumer.decode import Decoder
from consumer.demo.ending import Files, tell_end
from consumer.demo.knowledge import APPS, LANGUAGES, load_documents
from consumer.demo.readings import (
    Counts,
    Key,
    Rolling,
    Sample,
    fell,
    rolling_scores,
    scorer_counts,
    topic_distances,
)
from consumer.demo.script import ACTS, Fault, Scheduled, current, incidents, schedule
from consumer.demo.service import HelpDesk, broken_record
from consumer.demo.story import BESIDE, LEADING, Readings, Story
from consumer.demo.tally import Tally
from consumer.demo.traffic import Outlets, Scripted, Sent, drive
from consumer.demo.view import plain_line, render, sparkline
from consumer.score_file import FileUnusable
from consumer.settings import Settings
from metrics.event import Event, encode_event
from tests.case_files import case_file

SEGMENTS = [f"{app}/{lang}" for app in APPS for lang in LANGUAGES]
SCHEDULE = schedule(ACTS, 90.0)
WINDOWS = {"15s": 15.0, "60s": 60.0, "5m": 300.0}
TOPIC, QUESTION = BESIDE
OLD, WRONG = incidents(SCHEDULE)


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
        event = desk.handle(fault, 1_760_000_000.0).event
        assert decoder.decode(encode_event(event), fallback_id="x", broker_time=None).event == event


def test_wrong_documents_come_from_the_other_application_and_the_answer_stays() -> None:
    apps = {d.id: d.app for d in load_documents()}
    for fault, same_app in ((Fault.NONE, True), (Fault.WRONG_DOCUMENTS, False)):
        desk = HelpDesk(load_documents(), 7)
        for event in (desk.handle(fault, 1.0).event for _ in range(200)):
            assert all((apps[chunk.id or ""] == event.labels["app"]) is same_app for chunk in event.contexts)


def test_the_same_seed_gives_the_same_conversation() -> None:
    def told(seed: int) -> list[Event]:
        desk = HelpDesk(load_documents(), seed)
        return [desk.handle(Fault.NONE, 1.0).event for _ in range(50)]

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
    # The short window of 12 s must fit into each incident, and most of it into the calm between them.
    first, second = incidents(scheduled)
    assert min(first.end - first.start, second.end - second.start) >= 12
    assert first.start >= 16
    assert second.start - first.end >= 10
    assert scheduled[-1].end - second.end >= 6
    assert current(scheduled, first.start).act.fault is Fault.OLD_KNOWLEDGE
    assert current(scheduled, second.start).act.fault is Fault.WRONG_DOCUMENTS
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
    assert wrong.index(True) == pytest.approx(WRONG.start * 20, rel=0.15)
    assert not any(wrong[-100:])
    scripted = [sent.scripted[event.id] for event in logged]
    # A refusal over wrong documents is no bad answer.
    bad = sum(s.bad for s in scripted if s.fault is Fault.WRONG_DOCUMENTS)
    assert 0.9 * sum(wrong) < bad < sum(wrong)
    assert not any(s.bad for s in scripted if s.fault is Fault.NONE)
    assert 0.6 < sum(s.bad for s in scripted if s.fault is OLD.act.fault) / (20 * (OLD.end - OLD.start)) < 0.95


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
        gauge.labels(TOPIC, "15s", "aaaaaaaa", "all", "all").set(value)
        gauge.labels(TOPIC, "15s", "aaaaaaaa", "hr-helpdesk", "zh").set(value - 0.1)
    count = Gauge("groundwatch_rolling_samples", "x", labels, registry=registry)
    count.labels(TOPIC, "15s", "aaaaaaaa", "all", "all").set(42)
    events_in = PrometheusCounter("groundwatch_events_in", "x", ("topic", "partition"), registry=registry)
    ended = PrometheusCounter("groundwatch_events", "x", ("topic", "partition", "outcome"), registry=registry)
    for partition in ("0", "1"):
        events_in.labels("qa.events", partition).inc(10)
        for outcome, n in (("sampled_out", 4), ("ignored", 1), ("scored", 2), ("unscored", 1), ("dead_lettered", 1)):
            ended.labels("qa.events", partition, outcome).inc(n)
    histogram = Histogram("groundwatch_score", "x", ("metric", "app", "lang"), buckets=(0.1, 0.2), registry=registry)
    for metric, app, lang, values in (
        ("topic_distance", "hr-helpdesk", "zh", (0.05, 0.15)),
        ("topic_distance", "it-helpdesk", "en", (0.15, 0.5)),
        ("topic_distance", "all", "all", (0.05,)),
        ("faithfulness", "it-helpdesk", "en", (0.05,)),
    ):
        for value in values:
            histogram.labels(metric, app, lang).observe(value)
    cache = PrometheusCounter("groundwatch_cache_requests", "x", ("cache", "result"), registry=registry)
    for name, result, n in (("memory", "hit", 6), ("memory", "miss", 4), ("redis", "hit", 1), ("redis", "miss", 3)):
        cache.labels(f"embedding_{name}", result).inc(n)
    found = samples(registry)
    assert rolling_scores(found) == {Key(TOPIC, "15s", "all"): Rolling(0.9, 0.88, 0.92, 42)}
    assert topic_distances(found) == {0.1: 1, 0.2: 3, float("inf"): 4}
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
    assert not fell(rolling(0.9), rolling(0.5, n=19))


Readable = dict[Key, Rolling]


def inside(incident: Scheduled, second: float, window: float) -> float:
    """Which share of the window that ends at `second` lies in the incident."""
    return max(0.0, min(second, incident.end) - max(incident.start, second - window)) / window


def played(seed: int, *, old: float = 0.6, wrong: float = 0.07) -> Story:
    """The story over readings. The first incident lowers faithfulness by `old`, the second the similarities by `wrong`
    and faithfulness ten times as much. The noise is that of 100 samples a window."""
    rng = random.Random(seed)
    story = Story(SCHEDULE, WINDOWS, SEGMENTS)
    moved = still = 0.0
    for second in range(100):
        now = float(second)
        lower = {
            LEADING: old * inside(OLD, now, 15.0) + 10 * wrong * inside(WRONG, now, 15.0),
            TOPIC: wrong * inside(WRONG, now, 15.0),
            QUESTION: wrong * inside(WRONG, now, 15.0),
        }
        readings: Readable = {}
        for metric, drop in lower.items():
            for segment in ["all", *SEGMENTS]:
                readings[Key(metric, "15s", segment)] = rolling(0.95 - drop + rng.gauss(0, 0.003))
                readings[Key(metric, "5m", segment)] = rolling(0.95, n=1000)
        # Answers of an incident lie one bucket further.
        moved += 8 * (wrong > 0 and WRONG.start <= now < WRONG.end)
        still += 8 - 8 * (wrong > 0 and WRONG.start <= now < WRONG.end)
        distances = {0.1: still, 0.2: still + moved, 2.0: still + moved, float("inf"): still + moved}
        counts = Counts(events=12 * second, sampled_out=6 * second, scored=6 * second)
        story.observe(now, Readings(readings, counts, distances))
    return story


def test_both_incidents_are_seen_each_by_what_it_lowers() -> None:
    story = played(1)
    summary = story.summary()
    assert story.missed() == ()
    assert not story.may_see(0.0)
    assert summary["incident_start"] == 25.2
    assert 0 < summary["incident_seen_seconds"] < 10
    assert summary["rolling_before"][LEADING]["all"]["value"] == 0.95
    assert summary["rolling_during"][LEADING]["all"]["value"] < 0.5
    assert summary["rolling_during"][TOPIC]["all"]["value"] > 0.93
    assert set(summary["rolling_during"][LEADING]) == {"all", *SEGMENTS}
    first, second = summary["incidents"]
    assert 0 < first["seen_seconds"] < 10
    assert 0 < second["seen_seconds"] < 12
    assert second["rolling_during"][TOPIC]["all"]["value"] < 0.9
    assert first["topic_distance_wasserstein"] < 0.01
    assert second["topic_distance_wasserstein"] == pytest.approx(0.1, abs=0.02)
    assert summary["topic_distance_calm"] == pytest.approx(0.0, abs=1e-9)
    texts = [note.text for note in story.state().notes]
    assert any("back at" in text for text in texts)
    assert any(text.startswith("old knowledge: seen after") and "as before" in text for text in texts)


def test_alerts_fire_in_the_incidents_and_end_after_them() -> None:
    summary = played(1).summary()
    assert [alert["name"] for alert in summary["alerts"]] == [
        "FaithfulnessLow", "FaithfulnessLow", "TopicSimilarityLow", "QuestionContextSimilarityLow",
    ]  # fmt: skip
    first, second, topic, _ = summary["alerts"]
    assert OLD.start < first["fired"] < OLD.end < first["resolved"] < WRONG.start < second["fired"] < WRONG.end
    assert topic["threshold"] == pytest.approx(0.925)
    assert summary["first_alert_seconds"] == pytest.approx(first["fired"] - OLD.start, abs=0.1)
    assert played(1, old=0.0, wrong=0.0).summary()["alerts"] == []
    assert played(1, old=0.0, wrong=0.0).summary()["first_alert_seconds"] is None


@pytest.mark.parametrize(
    ("old", "wrong", "missed"),
    [(0.0, 0.07, {OLD.act.name}), (0.6, 0.0, {WRONG.act.name}), (0.0, 0.0, {OLD.act.name, WRONG.act.name})],
)
def test_an_incident_that_does_not_show_is_missed(old: float, wrong: float, missed: set[str]) -> None:
    # Chance alone: 3 lines, some 30 looks of independent noise each; a rare fall is allowed in one run of ten.
    wrongly = sum({s.act.name for s in played(seed, old=old, wrong=wrong).missed()} != missed for seed in range(10))
    assert wrongly <= 1


@pytest.mark.parametrize(("wrong", "seen"), [(0.07, True), (0.0, False)])
def test_the_end_says_what_was_not_seen_and_writes_what_was_asked_for(tmp_path: Path, wrong: float, seen: bool) -> None:
    story, tally = played(1, wrong=wrong), Tally({"1": Scripted(Fault.WRONG_DOCUMENTS, True)})
    tally.keep([case_file(1, 1.0)])
    files = Files(tmp_path / "summary.json", tmp_path / "demo.svg", tmp_path / "cases.jsonl")
    out = io.StringIO()
    tell_end(story, tally, (story.state(), tally.newest()), files, Console(file=out, width=200))
    assert "old knowledge: seen" in out.getvalue()
    assert ("wrong documents: NOT seen" in out.getvalue()) is not seen
    assert ("wrong documents: seen" in out.getvalue()) is seen
    summary = json.loads((tmp_path / "summary.json").read_bytes())
    assert [incident["seen_seconds"] is not None for incident in summary["incidents"]] == [True, seen]
    assert summary["bad_answers"]["flagged_share"] is None
    assert CaseLines(tmp_path / "cases.jsonl").select(CaseFilter()) == [case_file(1, 1.0)]
    picture = (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert "28&#160;days" in picture
    assert 'url("http' not in picture


def test_a_run_that_scored_nothing_leaves_the_files_of_an_earlier_one(tmp_path: Path) -> None:
    """Interrupted before traffic, it has nothing to put in their place."""
    files = Files(tmp_path / "summary.json", tmp_path / "demo.svg", tmp_path / "cases.jsonl")
    for file in (files.summary, files.picture, files.cases):
        assert file is not None
        file.write_text("of yesterday")
    out = io.StringIO()
    console = Console(file=out, width=200)
    tell_end(Story(SCHEDULE, WINDOWS, SEGMENTS), Tally({}), None, files, console)
    assert {file.read_text() for file in tmp_path.iterdir()} == {"of yesterday"}
    assert "nothing was scored, so no file is written" in out.getvalue()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone" / "summary.json"
    files = Files(gone, None, None)
    with pytest.raises(FileUnusable, match="cannot be written") as raised:
        tell_end(played(1), Tally({}, records=1), None, files, Console(file=io.StringIO()))

    def fail(*_: object) -> int:
        raise raised.value

    monkeypatch.setattr("consumer.demo.run.run_demo", fail)
    done = CliRunner().invoke(group, ["demo", "--summary", str(tmp_path / "summary.json")])
    assert (done.exit_code, done.stderr.startswith(f"Error: {gone}: cannot be written")) == (1, True)


def test_a_fall_of_topic_similarity_is_no_old_knowledge() -> None:
    story = Story(SCHEDULE, WINDOWS, SEGMENTS)
    for second in range(int(OLD.end) + 1):
        low = 0.3 if second > OLD.start else 0.0
        readings: Readable = {}
        for metric in (LEADING, *BESIDE):
            readings[Key(metric, "15s", "all")] = rolling(0.95 - low)
            readings[Key(metric, "5m", "all")] = rolling(0.95, n=1000)
        story.observe(float(second), Readings(readings))
    assert story.seen[Fault.OLD_KNOWLEDGE].at is None


@pytest.mark.parametrize(("old", "wrong"), [(0.0, 0.0), (0.6, 0.07)])
def test_the_summary_accounts_for_every_event(old: float, wrong: float) -> None:
    summary = played(2, old=old, wrong=wrong).summary()
    parts = ("sampled_out", "ignored", "scored", "unscored", "dead_lettered", "in_flight")
    assert summary["events"] == sum(summary[part] for part in parts) > 0


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_view_shows_every_line_at_any_width(width: int) -> None:
    for story in (Story(SCHEDULE, WINDOWS, SEGMENTS), played(1)):
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


@pytest.mark.parametrize("height", [20, 60])
def test_the_view_marks_the_wrong_statement_of_the_newest_flagged_answers(height: int) -> None:
    hostile = replace(case_file(2, 2.0), question="[bold]is this\x1b[31m red?[/bold]")
    out = io.StringIO()
    Console(file=out, width=160, force_terminal=False).print(
        render(played(1).state(), (case_file(0, 0.0), case_file(1, 1.0), hostile), height)
    )
    shown = out.getvalue()
    assert "✗[You have 28 days of paid leave a year.]" in shown
    assert "says 28, the passage says 26; likely fault generation" in shown
    assert "[bold]is this" in shown
    assert "\x1b" not in shown
    assert "grade 1?" in shown
    assert "grade 0?" not in shown
    assert "Wasserstein to calm" in shown
    assert bool(re.search(r"^ +hr-helpdesk/zh +\d", shown, re.MULTILINE)) is (height == 60)
