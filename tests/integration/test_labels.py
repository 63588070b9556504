"""Labels from the command line through Kafka into Redis and beside the cases, on a real Kafka and a real Redis."""

from __future__ import annotations

import random
import time
from pathlib import Path

import orjson
import pytest
import redis
from click.testing import CliRunner, Result

from consumer.case_filter import CaseFilter, case_key
from consumer.case_store import CaseStore, open_store
from consumer.cli import group
from consumer.deadletter_reading import TopicReader
from consumer.embedded import free_port
from consumer.interrupts import Interrupts
from consumer.label import Label, LabelChange, label_of
from consumer.label_topic import read_labels
from consumer.labelling import own_name
from consumer.settings import Settings
from tests.case_files import audited, case_file
from tests.integration.test_cases import append, environment, settings_of
from tests.topic_making import records

NOW = float(int(time.time()))


def run(settings: Settings, *arguments: str, redis_url: str | None = None) -> Result:
    values = environment(settings) | {"GROUNDWATCH__TOPICS__LABELS": settings.topics.labels}
    if redis_url is not None:
        values["GROUNDWATCH__REDIS__CASES_URL"] = redis_url
    done = CliRunner().invoke(group, [*arguments], env=values)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


def on_topic(settings: Settings) -> dict[str, Label]:
    records(settings.kafka.bootstrap_servers, settings.topics.labels)  # waits until a new topic has its leader
    with TopicReader(settings, 10, Interrupts()) as reader:
        return dict(read_labels(reader, settings))


def listed(settings: Settings, *options: str) -> list[str]:
    lines = run(settings, "cases", "list", "--limit", "1000", "--json", *options).stdout.splitlines()
    return [orjson.loads(line)["record"]["id"] for line in lines]


def test_a_label_is_in_kafka_and_shown_beside_its_case(kafka: str, redis_url: str) -> None:
    settings = settings_of(kafka, redis_url)
    store = open_store(settings)
    store.put([audited(1, NOW), case_file(2, NOW - 1), case_file(3, NOW - 2)], NOW)
    done = run(settings, "label", "trace-1", "good", "--note", "checked\nwith HR")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"evt-1: good, by {own_name()}; it counts towards the corrected score\n"
    assert "corrects no score" in run(settings, "label", "evt-2", "bad", "--by", "bo").stdout
    labels = on_topic(settings)
    assert labels["evt-1"] == label_of(
        audited(1, NOW), "good", by=own_name(), note="checked with HR", now=labels["evt-1"].labelled_time
    )
    assert abs(labels["evt-1"].labelled_time - time.time()) < 60
    assert f"label ✓ good by {own_name()}" in run(settings, "cases").stdout
    shown = run(settings, "cases", "show", "evt-1").stdout
    assert f"LABEL  ✓ good by {own_name()}" in shown
    assert "│ checked with HR" in shown
    assert orjson.loads(run(settings, "cases", "show", "evt-2", "--json").stdout)["label"]["by"] == "bo"
    for chosen, expected in (("good", ["evt-1"]), ("bad", ["evt-2"]), ("none", ["evt-3"])):
        assert listed(settings, "--label", chosen) == expected
    assert listed(settings, "--label", "none", "--label", "bad") == ["evt-2", "evt-3"]
    assert listed(settings, "--label", "bad", "--why", "audit") == []
    exported = run(settings, "cases", "export", "--label", "bad").stdout
    assert orjson.loads(exported)["case"]["label"] == "bad"

    # Labelling again replaces, and none takes it away.
    assert run(settings, "label", "evt-1", "bad", "--by", "cleo").exit_code == 0
    assert listed(settings, "--label", "good") == []
    assert listed(settings, "--label", "bad") == ["evt-1", "evt-2"]
    assert run(settings, "label", "evt-1", "none").stdout == "evt-1: no label\n"
    assert listed(settings, "--label", "none") == ["evt-1", "evt-3"]
    assert on_topic(settings).keys() == {"evt-2"}


def test_without_redis_the_topics_tell(kafka: str) -> None:
    settings = settings_of(kafka, "")
    append(settings, audited(1, NOW), case_file(2, NOW - 1))
    assert run(settings, "label", "evt-1", "good", "--by", "anna").exit_code == 0
    assert listed(settings, "--label", "good") == ["evt-1"]
    assert listed(settings, "--label", "none") == ["evt-2"]
    assert "label ✓ good by anna" in run(settings, "cases").stdout
    assert "LABEL  ✓ good by anna" in run(settings, "cases", "show", "evt-1").stdout


def test_redis_away_loses_no_label(kafka: str) -> None:
    away = f"redis://127.0.0.1:{free_port()}/0"
    settings = settings_of(kafka, away)
    append(settings, audited(1, NOW))
    done = run(settings, "label", "evt-1", "good")
    assert done.exit_code == 0
    assert "does not answer" in done.stderr
    assert "shown beside the cases once Redis answers again" in done.stderr
    assert on_topic(settings).keys() == {"evt-1"}


@pytest.mark.full
def test_kafka_away_says_so_and_leaves_redis_as_it_is(kafka: str, redis_url: str) -> None:
    settings = settings_of(kafka, redis_url)
    store = open_store(settings)
    store.put([audited(1, NOW)], NOW)
    kafka_settings = settings.kafka.model_copy(update={"bootstrap_servers": f"127.0.0.1:{free_port()}"})
    away = settings.model_copy(update={"kafka": kafka_settings})
    done = run(away, "label", "evt-1", "good", "--timeout", "1")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: not written: no answer from the broker at 127.0.0.1")
    missing = settings.model_copy(update={"topics": settings.topics.model_copy(update={"labels": "nowhere-labels"})})
    done = run(missing, "label", "evt-1", "good", "--timeout", "3")
    assert (done.exit_code, "there is no topic nowhere-labels" in done.stderr) == (1, True), done.stderr
    assert "run: groundwatch topics create" in done.stderr
    assert store.labels([audited(1, NOW)]) == {}


def test_messages_of_the_command(kafka: str, redis_url: str) -> None:
    settings = settings_of(kafka, redis_url)
    store = open_store(settings)
    other = audited(1, NOW, record={"content_hash": "another"})
    store.put([audited(1, NOW), other, case_file(2, NOW)], NOW)
    unclear = run(settings, "label", "evt-1", "good")
    assert unclear.exit_code == 1
    assert "2 cases are called 'evt-1'; name one by its key" in unclear.stderr
    assert run(settings, "label", case_key(other), "good").exit_code == 0
    assert store.labels([audited(1, NOW), other]).keys() == {case_key(other)}
    assert "no case file of 'nobody'" in run(settings, "label", "nobody", "bad").stderr
    assert run(settings, "label", "evt-2", "fine").exit_code == 2
    assert run(settings, "label", "evt-2").exit_code == 2
    long = run(settings, "label", "evt-2", "good", "--note", "x" * 1001)
    assert (long.exit_code, "at most 1,000" in long.stderr) == (2, True)
    assert run(settings, "label", "evt-2", "good", "--by", " ").exit_code == 2
    assert on_topic(settings).keys() == {"evt-1"}
    # A label whose case is gone can still be taken away.
    store.forget([case_key(audited(1, NOW)), case_key(other)])
    assert run(settings, "label", "evt-1", "none").exit_code == 0
    assert on_topic(settings) == {}


def test_export_and_import(kafka: str, redis_url: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, redis_url)
    store = open_store(settings)
    cases = [audited(n, NOW - n) for n in range(30)]
    store.put(cases, NOW)
    lines = [
        orjson.dumps({"id": f"evt-{n}", "verdict": ("good", "bad")[n % 3 == 0], "note": f"n{n}"}) for n in range(30)
    ]
    file = tmp_path / "labels.jsonl"
    file.write_bytes(b"\n".join([*lines, b"nonsense", b'{"id": "evt-99", "verdict": "good"}']))
    assert "30 labels would be written" in run(settings, "label", "import", str(file), "--dry-run").stderr
    assert on_topic(settings) == {}
    done = run(settings, "label", "import", str(file), "--by", "panel")
    assert done.exit_code == 1
    assert "line 31: no JSON" in done.stderr
    assert "line 32: no case file of 'evt-99'" in done.stderr
    assert "30 labels written" in done.stderr
    out = tmp_path / "out.jsonl"
    assert run(settings, "label", "export", "--out", str(out)).stderr == "30 labels written\n"
    before = on_topic(settings)
    assert len(before) == 30
    assert before["evt-3"].verdict == "bad"
    assert before["evt-3"].by == "panel"
    # Into another installation, whose cases are gone.
    other = settings_of(kafka, "")
    done = run(other, "label", "import", str(out))
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (0, "30 labels written")
    assert on_topic(other) == before
    assert run(other, "label", "export", "--since", "2000-01-01").stdout == out.read_text()
    assert run(other, "label", "export", "--since", "2100-01-01").stderr == "0 labels written\n"


def labels_of(count: int) -> list[LabelChange]:
    return [
        LabelChange(f"evt-{n}", label_of(audited(n, NOW - n), ("good", "bad")[n % 2], by="anna", note="", now=NOW - n))
        for n in range(count)
    ]


def test_the_index_keeps_pace_with_its_cases(redis_url: str) -> None:
    store = CaseStore(redis_url, ttl_seconds=3600, most=20, label_seconds=7200)
    cases = [audited(n, NOW - n, record={"scored_time": NOW - n}) for n in range(10)]
    store.index_labels(labels_of(10), NOW)
    store.put(cases, NOW)  # labels may come before their cases, and after
    assert [case.record.id for case in store.select(CaseFilter(said=("bad",)))] == [f"evt-{n}" for n in (1, 3, 5, 7, 9)]
    store.put(cases, NOW)
    assert len(store.keys(CaseFilter(said=("good",)))) == 5
    assert store.keys(CaseFilter(said=("none",))) == []
    assert store.label_counts() == {"good": 5, "bad": 5}
    assert [label.id for label in store.newest_labels("bad", 2)] == ["evt-1", "evt-3"]
    # Told again, in the same order, they are the same; a change is a change.
    store.index_labels([*labels_of(10), LabelChange("evt-0", None), LabelChange("evt-0", None)], NOW)
    assert store.label_counts() == {"good": 4, "bad": 5}
    assert store.keys(CaseFilter(said=("none",))) == [case_key(cases[0])]
    # A case that goes leaves nothing behind; its label stays until its own time.
    store.forget([case_key(cases[1])])
    assert store.label_counts() == {"good": 4, "bad": 5}
    assert len(store.keys(CaseFilter(said=("bad",)))) == 4
    store.index_labels(labels_of(60), NOW)
    assert store.label_counts() == {"good": 20, "bad": 20}
    assert store.newest_labels("good", 100)[-1].id == "evt-38"
    store.index_labels(labels_of(2), NOW + 7190)
    assert store.label_counts() == {"good": 5, "bad": 5}


def test_whatever_comes_in_whatever_order_the_index_tells_what_there_is(redis_url: str) -> None:
    """Steps at random, against plain dictionaries."""
    rng = random.Random(7)
    raw = redis.Redis.from_url(redis_url)
    store = CaseStore(redis_url, ttl_seconds=3600, most=1000)
    cases = {n: [audited(n, NOW - n, record={"content_hash": f"{n}-{c}"}) for c in range(2)] for n in range(12)}
    there: set[str] = set()
    said: dict[str, str] = {}
    forgotten: set[str] = set()
    for _ in range(400):
        number, content = rng.randrange(12), rng.randrange(2)
        case = cases[number][content]
        key, other = case_key(case), case_key(cases[number][1 - content])
        step = rng.choice(("put", "put", "good", "bad", "none", "forget", "drop"))
        if step == "put":
            store.put([case], NOW)
            there |= {key} - forgotten
        elif step == "none":
            store.index_labels([LabelChange(case.record.id, None)], NOW)
            said.pop(key, None)
            said.pop(other, None)
        elif step in ("good", "bad"):
            label = label_of(case, "good" if step == "good" else "bad", by="anna", note="", now=NOW)
            store.index_labels([LabelChange(label.id, label)], NOW)
            said.pop(other, None)
            said[key] = step
        elif step == "drop" and len(there) > 10:
            before = set(store.keys(CaseFilter()))
            store.drop_oldest(1)
            there -= before - set(store.keys(CaseFilter()))
        elif step == "forget" and rng.random() < 0.1:
            store.forget([key])
            forgotten |= {key} & there
            there -= {key}
        for wanted in ("good", "bad", "none"):
            expected = {one for one in there if said.get(one, "none") == wanted}
            assert set(store.keys(CaseFilter(said=(wanted,)))) == expected, step
    every = [case for pair in cases.values() for case in pair]
    assert {key: label.verdict for key, label in store.labels(every).items()} == said
    counts = store.label_counts()
    assert (counts["good"], counts["bad"]) == tuple(list(said.values()).count(verdict) for verdict in ("good", "bad"))
    # What is taken away leaves nothing behind.
    store.drop_oldest(100)
    store.index_labels([LabelChange(pair[0].record.id, None) for pair in cases.values()], NOW)
    assert [key.decode().rpartition(":")[2] for key in raw.keys("*")] in ([], ["forgotten"])
