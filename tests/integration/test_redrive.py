"""`groundwatch deadletters` and `groundwatch redrive` on a real Kafka, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from consumer.deadletters import dead_letter
from consumer.delivered import Headers
from consumer.embedded import free_port
from consumer.record import Position, decode_record
from consumer.settings import Settings
from consumer.topics import create_topics
from tests.integration.scorer_harness import (
    Harness,
    Record,
    event,
    produce,
    read_all,
    running_scorer,
    test_settings,
)
from tests.processes import wait_until

OWN_FORM = """
about = "the help desk's own log"

[recognise]
all = ["hd.ask", "hd.said"]

[fields]
question = "hd.ask"
contexts = "hd.found"
answer = "hd.said"
"""


def broken(number: int) -> bytes:
    """A record in a form of its own, without id or time."""
    text = {"ask": f"Who is room {number} for?", "found": [f"Room {number} is for guests."], "said": "For guests."}
    return orjson.dumps({"hd": text})


def environ(settings: Settings) -> dict[str, str]:
    topics = settings.topics
    return os.environ | {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": settings.kafka.bootstrap_servers,
        "GROUNDWATCH__TOPICS__DEADLETTER": topics.deadletter,
        "GROUNDWATCH__TOPICS__REDRIVE": topics.redrive,
    }


COMMAND = [sys.executable, "-c", "from consumer.cli import main; main()"]


def call(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *arguments], env=environ(settings), capture_output=True, text=True, timeout=90)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def listed(settings: Settings, *arguments: str) -> dict[str, int]:
    done = call(settings, "deadletters", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {reason: group["count"] for reason, group in json.loads(done.stdout)["reasons"].items()}


def put_letters(
    settings: Settings,
    offsets: Sequence[int],
    *,
    reason: str = "unrecognised",
    headers: Headers = (),
    payload: bool = True,
) -> None:
    for offset in offsets:
        letter = dead_letter(
            settings.topics.deadletter, reason=reason, detail=f"no form fits record {offset}",
            read_at=Position("first", 2, offset), logged=1.6e9 + offset, key=b"k%d" % offset, value=broken(offset),
            headers=[("tenant", b"a"), *headers], keep_payload=payload,
        )  # fmt: skip
        produce(
            settings.kafka.bootstrap_servers, letter.topic, [letter.value], key=letter.key, headers=[*letter.headers]
        )


def redriven(settings: Settings) -> list[Record]:
    return read_all(settings.kafka.bootstrap_servers, settings.topics.redrive)


def identity_holds(scorer: Harness, topic: str, events: int) -> bool:
    """Design invariant 3 for one topic, with nothing in flight."""
    ended = sum(
        scorer.value("events_total", topic=topic, outcome=kind)
        for kind in ("sampled_out", "ignored", "scored", "unscored", "dead_lettered")
    )
    return scorer.value("events_in_total", topic=topic) == events == ended


def test_a_broken_form_is_dead_lettered_mapped_redriven_and_scored_under_its_first_position(
    kafka: str, tmp_path: Path
) -> None:
    settings = test_settings(kafka)
    events, redrive = settings.topics.events[0], settings.topics.redrive
    began = time.time()
    with running_scorer(settings) as scorer:
        produce(kafka, events, [event(1), broken(1), event(2), broken(2), b"not json"], headers=[("tenant", b"a")])
        wait_until(lambda: sum(scorer.ended().values()) == 5, 30, "5 ended")
        assert listed(settings) == {"unrecognised": 2, "not_json": 1}
        # Too early: the form is still unknown, and both fail again.
        assert call(settings, "redrive", "--reason", "unrecognised").returncode == 0
        wait_until(lambda: scorer.value("deadletters_total", reason="unrecognised") == 4, 30, "failed again")
        wait_until(lambda: identity_holds(scorer, redrive, 2), 10, "the identity, nothing in flight")
    assert listed(settings) == {"unrecognised": 4, "not_json": 1}
    letters = read_all(kafka, settings.topics.deadletter)
    places = [(r.headers["groundwatch-offset"], r.headers.get("groundwatch-attempt")) for r in letters]
    assert sorted(places, key=str) == [(b"1", None), (b"1", b"1"), (b"3", None), (b"3", b"1"), (b"4", None)]

    (tmp_path / "helpdesk.toml").write_text(OWN_FORM)
    fixed = settings.model_copy(update={"decode": settings.decode.model_copy(update={"forms_dir": tmp_path})})
    with running_scorer(fixed) as scorer:
        done = call(settings, "redrive", "--reason", "unrecognised")
        assert done.returncode == 0, done.stderr
        assert "sent to" in done.stdout
        assert ": 2 of 2 (unrecognised 2)" in done.stdout
        assert "left, sent before: 2" in done.stdout
        assert "left, other reason: 1" in done.stdout
        wait_until(lambda: scorer.value("events_total", topic=redrive, outcome="scored") == 2, 30, "scored")
        wait_until(lambda: identity_holds(scorer, redrive, 2), 10, "the identity, nothing in flight")
    records = [decode_record(r.value) for r in read_all(kafka, settings.topics.scores)]
    assert sorted(r.id for r in records) == sorted(["e1", "e2", f"{events}-0-1", f"{events}-0-3"])
    sources = {r.id: r.source for r in records}
    assert sources[f"{events}-0-1"] == Position(events, 0, 1)
    assert sources[f"{events}-0-3"] == Position(events, 0, 3)
    first_seen = {r.id: r.event_time for r in records if r.id.startswith(events)}
    assert all(
        began - 1 <= t <= r.scored_time - 0.5 for t in first_seen.values() for r in records if r.id in first_seen
    )
    assert all(r.headers["tenant"] == b"a" for r in redriven(settings))


@pytest.mark.full
def test_letters_go_once_an_attempt_and_three_times_at_most(kafka: str) -> None:
    settings = test_settings(kafka)
    create_topics(settings, 20)
    put_letters(settings, range(6))
    put_letters(settings, [2])  # the scorer was killed before its commit, and wrote this one twice
    put_letters(settings, [6], headers=[("groundwatch-attempt", b"3")])
    put_letters(settings, [7], payload=False)
    put_letters(settings, [8], reason="not_json")

    dry = call(settings, "redrive", "--dry-run", "--reason", "unrecognised")
    assert dry.returncode == 0
    assert f"would be sent to {settings.topics.redrive}: 6 (unrecognised 6)" in dry.stdout
    assert redriven(settings) == []

    one = call(settings, "redrive", "--reason", "unrecognised", "--max", "1")
    assert ": 1 of 1" in one.stdout
    rest = call(settings, "redrive", "--reason", "unrecognised")
    assert ": 5 of 5 (unrecognised 5)" in rest.stdout
    for said in (
        "three attempts made: 1",
        "without payload: 1",
        "other reason: 1",
        "sent before: 1",
        "repeats (the scorer wrote the same letter twice): 1",
    ):
        assert f"left, {said}" in rest.stdout
    assert "left, no fix helps, and --reason does not name them: 1" in call(settings, "redrive").stdout
    again = call(settings, "redrive", "--reason", "not_json")
    assert ": 1 of 1 (not_json 1)" in again.stdout, "what a filter left out is not forgotten"
    assert ": 0 of 0" in call(settings, "redrive").stdout

    sent = redriven(settings)
    assert len(sent) == 7
    offsets = {int(r.headers["groundwatch-offset"] or b"") for r in sent}
    assert offsets == {0, 1, 2, 3, 4, 5, 8}
    for record in sent:
        offset = int(record.headers["groundwatch-offset"] or b"")
        assert (record.key, record.value) == (b"k%d" % offset, broken(offset))
        assert record.headers == {
            "tenant": b"a", "groundwatch-topic": b"first", "groundwatch-partition": b"2",
            "groundwatch-offset": b"%d" % offset, "groundwatch-attempt": b"1",
            "groundwatch-logged": b"%d" % ((1_600_000_000 + offset) * 1000),
        }  # fmt: skip
    both = ("--reason", "not_json", "--reason", "unrecognised")
    assert ": 7 of 7" in call(settings, "redrive", "--from-start", *both).stdout
    unknown = call(settings, "redrive", "--reason", "unrecognized")
    assert "there are: unrecognised (8), not_json (1)" in unknown.stderr
    assert unknown.returncode == 1
    assert call(settings, "redrive", "--reason", "too_large").returncode == 0, "a reason that no letter has just now"


def test_deadletters_shows_no_text_unless_asked(kafka: str) -> None:
    settings = test_settings(kafka)
    create_topics(settings, 20)
    assert "no dead letters" in call(settings, "deadletters").stdout
    put_letters(settings, [1, 2])
    produce(kafka, settings.topics.deadletter, [b"a stranger's \x1b[31m record"])
    table = call(settings, "deadletters")
    assert table.returncode == 0, table.stderr
    assert "first-2-2" in table.stdout
    assert "no form fits record 2" in table.stdout
    assert "mapping file" in table.stdout
    assert "guests" not in table.stdout
    shown = call(settings, "deadletters", "--show", "2")
    assert "Room 2 is for guests" in shown.stdout
    assert "Room 1" not in shown.stdout
    assert "\x1b" not in shown.stdout
    assert listed(settings, "--reason", "unrecognised") == {"unrecognised": 2}
    assert listed(settings, "--since", "2100-01-01") == {}
    assert listed(settings, "--since", "1h") == {"unrecognised": 2, "": 1}
    assert "left, not written by the scorer: 1" in call(settings, "redrive", "--dry-run").stdout


def test_a_letter_that_a_killed_scorer_wrote_twice_is_listed_once(kafka: str) -> None:
    settings = test_settings(kafka)
    create_topics(settings, 20)
    put_letters(settings, [1, 2, 2, 2])
    put_letters(settings, [2], headers=[("groundwatch-attempt", b"1")])
    assert listed(settings) == {"unrecognised": 3}, "the letter after a redrive is another one"
    whole = json.loads(call(settings, "deadletters", "--json", "--show", "9").stdout)
    assert (whole["letters"], whole["reasons"]["unrecognised"]["repeats"]) == (3, 2)
    assert [(one["position"], one["attempts"]) for one in whole["shown"]] == [
        ("first-2-1", 0), ("first-2-2", 0), ("first-2-2", 1),
    ]  # fmt: skip
    assert "2 repeats are not counted" in call(settings, "deadletters").stdout
    dry = call(settings, "redrive", "--dry-run").stdout
    assert ": 3 (unrecognised 3)" in dry
    assert "left, repeats (the scorer wrote the same letter twice): 2" in dry
    assert "sent before" not in dry


def test_a_reason_that_no_dead_letter_has_is_told_with_those_that_there_are(kafka: str) -> None:
    settings = test_settings(kafka)
    create_topics(settings, 20)
    put_letters(settings, [1, 2])
    put_letters(settings, [3], reason="not_json")
    there = f"on {settings.topics.deadletter} has the reason '%s'; there are: unrecognised (2), not_json (1)"
    there = f"no dead letter {there}"
    for command in (["deadletters"], ["deadletters", "--json"], ["redrive", "--dry-run"]):
        done = call(settings, *command, "--reason", "nope")
        assert (done.returncode, done.stderr.strip()) == (1, there % "nope"), "a slip of the pen"
        done = call(settings, *command, "--reason", "too_large")
        assert (done.returncode, done.stderr.strip()) == (0, there % "too_large"), "one that no letter has just now"
    assert call(settings, "deadletters", "--reason", "nope").stdout == ""


@pytest.mark.parametrize("command", ["deadletters", "redrive", "redrive --dry-run"])
def test_a_broker_that_is_away_is_one_clear_line_within_seconds(command: str) -> None:
    settings = test_settings(f"127.0.0.1:{free_port()}")
    began = time.monotonic()
    done = call(settings, *command.split(), "--timeout", "3")
    assert done.returncode == 1
    assert "no answer from the broker" in done.stderr
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1), "nothing was read, so nothing is summed up"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("command", ["deadletters", "redrive --from-start --dry-run"])
def test_missing_topics_are_named(kafka: str, command: str) -> None:
    settings = test_settings(kafka)
    done = call(settings, *command.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert f"there is no topic {settings.topics.deadletter}" in done.stderr


@pytest.mark.full
def test_ctrl_c_and_a_second_run_send_every_letter_once(kafka: str) -> None:
    settings = test_settings(kafka)
    create_topics(settings, 20)
    letters = 30_000
    produce_many(kafka, settings.topics.deadletter, broken(0), letters)
    watch = Consumer({"bootstrap.servers": kafka, "group.id": "watch"})
    process = subprocess.Popen(
        [*COMMAND, "redrive"], env=environ(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        redrive = TopicPartition(settings.topics.redrive, 0)
        wait_until(lambda: watch.get_watermark_offsets(redrive, 5)[1] > 0 or process.poll() is not None, 30, "a start")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        watch.close()
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert 0 < len(redriven(settings)) < letters, "interrupted too early or too late to show anything"
    assert call(settings, "redrive").returncode == 0
    places = [(r.headers["groundwatch-topic"], r.headers["groundwatch-offset"]) for r in redriven(settings)]
    assert len(places) == len(set(places)) == letters


def produce_many(bootstrap: str, topic: str, value: bytes, letters: int) -> None:
    """Dead letters of as many events, quickly: `produce` sends one set of headers only."""
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": letters + 1, "linger.ms": 5})
    for offset in range(letters):
        letter = dead_letter(
            topic, reason="unrecognised", detail="", read_at=Position("many", 0, offset), logged=None, key=None,
            value=value, headers=(), keep_payload=True,
        )  # fmt: skip
        producer.produce(topic, letter.value, headers=[*letter.headers])
    assert producer.flush(60) == 0
