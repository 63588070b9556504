"""Case files from the topic into Redis and onto the terminal, on a real Kafka and a real Redis."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
import redis
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaException, TopicPartition

from consumer.case_file import CaseFile, encode_case
from consumer.case_filter import CaseFilter, case_key
from consumer.case_reader import CaseReader
from consumer.case_store import CaseStore, open_store
from consumer.case_topic import CaseTopic
from consumer.cli import group
from consumer.decode import Decoder
from consumer.embedded import embedded_redis, free_port
from consumer.health import Pulse
from consumer.settings import Settings
from consumer.topics import create_topics
from metrics.event import content_hash
from metrics.judge import Evidence, Judgement, JudgeRequest, Label, Verdict
from metrics.outcome import Unscored
from tests.case_files import audited, case_file
from tests.integration.scorer_harness import HashEmbedder, event, produce, running_scorer, test_settings
from tests.processes import Running, groundwatch, wait_until
from tests.score_records import score_record

HOSTILE = "\x1b[31mCASE\x1b[0m \u202efdp"


@dataclass(frozen=True)
class NumbersJudge:
    """A rule for these tests: a statement stands if all its numbers stand in the first passage."""

    name: str = "numbers"
    identity: str = "numbers/1"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Judgement(tuple(self._verdict(s.text, r) for s in r.statements)) for r in requests]

    def _verdict(self, text: str, request: JudgeRequest) -> Verdict:
        chunk = request.contexts[0]
        good = set(re.findall(r"\d+", text)) <= set(re.findall(r"\d+", chunk.text))
        evidence = (Evidence(0, chunk.id, 0, len(chunk.text), chunk.text),)
        if good:
            return Verdict(Label.SUPPORTED, "same numbers", evidence, 0.9)
        return Verdict(Label.CONTRADICTED, "another number", evidence, 0.1)


def settings_of(kafka: str, cases_url: str, **sections: dict[str, object]) -> Settings:
    settings = test_settings(kafka, redis={"cases_url": cases_url}, **sections)
    settings = settings.model_copy(
        update={"monitor": settings.monitor.model_copy(update={"group": f"{settings.scorer.group}-monitor"})}
    )
    create_topics(settings, 20)
    return settings


def environment(settings: Settings, address: str = "127.0.0.1:0") -> dict[str, str]:
    values = {
        "kafka__bootstrap_servers": settings.kafka.bootstrap_servers,
        "topics__scores": settings.topics.scores,
        "topics__flagged": settings.topics.flagged,
        "monitor__group": settings.monitor.group,
        "redis__cases_url": settings.redis.cases_url,
        "metrics__monitor__listen": address,
    }
    return {f"GROUNDWATCH__{key.upper()}": value for key, value in values.items()}


@contextlib.contextmanager
def monitor(settings: Settings, folder: Path, name: str = "monitor") -> Iterator[Running]:
    address = f"127.0.0.1:{free_port()}"
    with groundwatch("monitor", address, folder / f"{name}.log", environment(settings, address)) as running:
        yield running


def cases(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`groundwatch cases ...` as an engineer runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "consumer", "cases", *arguments],
        env=os.environ | environment(settings), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def cases_here(settings: Settings, *arguments: str) -> Result:
    """The same in this process, which is quicker."""
    return CliRunner().invoke(group, ["cases", *arguments], env=environment(settings))


def committed(settings: Settings) -> int:
    """Offset of the case reader's group; -1001 where there is none."""
    group = f"{settings.monitor.group}-cases"
    consumer = Consumer({"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": group})
    deadline = time.monotonic() + 20
    try:
        while True:
            try:
                return int(consumer.committed([TopicPartition(settings.topics.flagged, 0)], timeout=10)[0].offset)
            except KafkaException:  # a new group's coordinator is still to be found
                assert time.monotonic() < deadline
                time.sleep(0.2)
    finally:
        consumer.close()


def append(settings: Settings, *found: CaseFile | bytes) -> None:
    values = [case if isinstance(case, bytes) else encode_case(case) for case in found]
    produce(settings.kafka.bootstrap_servers, settings.topics.flagged, values)


@dataclass
class Reading:
    """A reader in a thread of the test."""

    settings: Settings
    store: CaseStore
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.pulse = Pulse(time.monotonic)
        self.reader = CaseReader(
            self.settings, self.store, self.pulse, stop=self.stop, now=time.time, monotonic=time.monotonic
        )
        self.thread = threading.Thread(target=self.reader.run)

    def __enter__(self) -> Reading:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(30)
        assert not self.thread.is_alive()

    def value(self, name: str, **labels: str) -> float:
        return sum(
            sample.value
            for family in self.reader.collect()
            for sample in family.samples
            if sample.name == f"groundwatch_{name}" and labels.items() <= sample.labels.items()
        )


def holds(store: CaseStore, count: int) -> Callable[[], bool]:
    return lambda: store.count(time.time()) == count


def test_from_an_event_to_the_engineers_terminal(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Scorer, topic, monitor, Redis, and every sub-command on what came of it."""
    settings = settings_of(kafka, redis_url, cases={"audit_share": 0.0})
    wrong = event(1, answer="Grade 1 has 28 days of leave. It is for grade 1. Call +49 170 1234567.", trace_id="abc-1")
    with running_scorer(settings, HashEmbedder(), NumbersJudge()), monitor(settings, tmp_path) as running:
        produce(kafka, settings.topics.events[0], [event(0), wrong, event(2)])
        store = open_store(settings)
        wait_until(holds(store, 1), 60, "the flagged answer in Redis")
        wait_until(lambda: running.total("groundwatch_cases_stored") == 1, 10, "cases_stored")
        assert running.total("groundwatch_case_store_up") == 1
        assert running.total("groundwatch_cases_read_total", outcome="stored") == 1
        assert running.get("/healthz") == (200, "ok\n")
    listed = cases_here(settings)
    assert listed.exit_code == 0
    assert "e1" in listed.stdout
    assert "faithfulness_low" in listed.stdout
    assert "✗ contradicted │ Grade 1 has 28 days of leave." in listed.stdout
    assert "\x1b" not in listed.stdout
    for name in ("e1", "abc-1"):
        shown = cases_here(settings, "show", name)
        assert shown.exit_code == 0
        assert "✗ contradicted   1  │ Grade 1 has 28 days of leave." in shown.stdout
        assert "because │ another number" in shown.stdout
        assert "»Grade 1 has 21 days of leave a year.«" in shown.stdout
    assert "[PHONE-1]" in shown.stdout
    assert "1234567" not in shown.stdout + listed.stdout
    whole = orjson.loads(cases_here(settings, "list", "--json").stdout)
    assert whole["key"] == orjson.loads(cases_here(settings, "show", "e1", "--json").stdout)["key"]
    out = tmp_path / "events.jsonl"
    assert cases(settings, "export", "--out", str(out)).stderr == "1 case written\n"
    decoded = Decoder(Settings().decode).decode(out.read_bytes(), fallback_id="x", broker_time=None).event
    assert content_hash(decoded) == whole["record"]["content_hash"]
    forgotten = cases(settings, "forget", "e1", "--yes")
    assert forgotten.returncode == 0
    assert "1 case file removed" in forgotten.stdout
    assert "keep what they hold until their retention is over" in forgotten.stdout
    assert (
        f"audit: {os.environ.get('USER') or 'root'} removed 1" in forgotten.stderr
        or "removed 1 case" in forgotten.stderr
    )
    assert whole["key"] in forgotten.stderr
    assert cases_here(settings, "show", "e1").exit_code == 1
    # Whoever starts a new group reads the topic again: it stays forgotten.
    again = settings.model_copy(update={"monitor": settings.monitor.model_copy(update={"group": "other"})})
    with Reading(again, store) as reading:
        wait_until(lambda: reading.value("cases_read_total", outcome="forgotten") == 1, 30, "read again")
    assert holds(store, 0)()


def test_the_topic_answers_where_there_is_no_redis(kafka: str) -> None:
    settings = settings_of(kafka, "")
    now = time.time()
    found = [*(case_file(i, now - i) for i in range(5)), audited(9, now - 9)]
    append(settings, *found, b"not json", encode_case(case_file(2, now - 2)))
    topic = CaseTopic(settings)
    assert [case.record.id for case in topic.select(CaseFilter())] == [f"evt-{i}" for i in (0, 1, 2, 3, 4, 9)]
    assert topic.select(CaseFilter(why=("audit",)), 3) == [found[-1]]
    assert topic.select(CaseFilter(since=now - 2.5, text="grade 1?")) == [found[1]]
    assert topic.find("trace-3") == [found[3]]
    shown = cases(settings, "show", case_key(found[4]))
    assert shown.returncode == 0
    assert "CASE evt-4" in shown.stdout
    assert shown.stderr == f"redis.cases_url is not set: reading the topic {settings.topics.flagged}\n"
    exported = cases_here(settings, "export", "--audit")
    assert orjson.loads(exported.stdout)["case"]["audit_probability"] == 0.01
    assert cases(settings, "forget", "evt-1", "--yes").returncode == 1


def test_case_files_of_a_file(tmp_path: Path) -> None:
    now = time.time()
    found = [*(case_file(i, now - i) for i in range(3)), audited(9, now - 9)]
    file = tmp_path / "flagged.jsonl"
    file.write_bytes(b"\n".join(map(encode_case, [*found, found[0]])) + b"\n\n")
    settings = Settings()
    listed = cases_here(settings, "list", "--in", str(file), "--why", "flagged", "--json")
    assert [orjson.loads(line)["record"]["id"] for line in listed.stdout.splitlines()] == ["evt-0", "evt-1", "evt-2"]
    assert "CASE evt-9" in cases_here(settings, "show", "trace-9", "--in", str(file)).stdout
    assert len(cases_here(settings, "export", "--in", str(file), "--limit", "2").stdout.splitlines()) == 2
    missing = cases_here(settings, "list", "--in", str(tmp_path / "absent"))
    assert (missing.exit_code, missing.stderr) == (1, f"Error: {tmp_path / 'absent'}: No such file or directory\n")
    file.write_bytes(encode_case(found[0]) + b"\n{}\n")
    damaged = cases_here(settings, "list", "--in", str(file))
    assert (damaged.exit_code, "evt-0" in damaged.stdout, "line 2: no case file" in damaged.stderr) == (1, True, True)


def test_a_segment_that_no_case_can_have_says_which_there_are(redis_url: str, tmp_path: Path) -> None:
    """«No case file matches» alone would read as if all were well."""
    settings = Settings.model_validate({"redis": {"cases_url": redis_url}})
    for arguments in ((), ("list", "--json"), ("export",), ("export", "--out", str(tmp_path / "out"))):
        refused = cases_here(settings, *arguments, "--segment", "nolabel=x")
        assert refused.exit_code == 2
        assert "no dimension 'nolabel' (there are: app, lang)" in refused.stderr
    assert not (tmp_path / "out").exists()
    for arguments in ((), ("list", "--json"), ("export",)):
        told = cases_here(settings, *arguments, "--segment", "lang=xx")
        assert told.exit_code == 0
        assert "lang=xx is not in segments.allow (there are: en, zh, other)" in told.stderr


def test_the_segments_of_a_file_are_its_own(tmp_path: Path) -> None:
    file, empty = tmp_path / "flagged.jsonl", tmp_path / "empty.jsonl"
    own = [case_file(i, 1e9 + i, record={"segment": {"desk": desk}}) for i, desk in enumerate(("hr", "it\x1b"))]
    file.write_bytes(b"\n".join(map(encode_case, own)))
    empty.write_bytes(b"")
    settings = Settings()
    assert cases_here(settings, "list", "--in", str(file), "--segment", "desk=hr").stdout.count("evt-0") >= 1
    for command in ("list", "export"):
        refused = cases_here(settings, command, "--in", str(file), "--segment", "app=hr")
        assert (refused.exit_code, "no dimension 'app' (there are: desk)" in refused.stderr) == (2, True)
        told = cases_here(settings, command, "--in", str(file), "--segment", "desk=shop")
        assert told.exit_code == 0
        assert "no case of the file has desk=shop (there are: hr, it\\x1b)" in told.stderr
        assert cases_here(settings, command, "--in", str(empty), "--segment", "app=hr").exit_code == 0


def test_an_export_that_cannot_read_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "audit.jsonl"
    old.write_text("the export of yesterday\n")
    missing = cases_here(Settings(), "export", "--in", str(tmp_path / "absent"), "--out", str(old))
    assert missing.exit_code == 1
    assert old.read_text() == "the export of yesterday\n"


def test_messages_of_the_command(kafka: str, redis_url: str) -> None:
    settings = settings_of(kafka, redis_url)
    assert cases_here(settings).stderr == "no case files yet\n"
    store = open_store(settings)
    record = score_record(1, time.time(), {"faithfulness": 0.1})
    store.put([case_file(1, record.event_time, question=HOSTILE, record={"id": f"{HOSTILE}-1"})], time.time())
    store.put([case_file(n, record.event_time - n) for n in range(2, 40)], time.time())
    assert len(cases_here(settings, "--limit", "3").stdout.splitlines()) == 6
    assert "there are more" in cases_here(settings, "--limit", "3").stderr
    assert len(cases_here(settings, "--limit", "100", "--json").stdout.splitlines()) == 39
    assert "no case file matches" in cases_here(settings, "--fault", "prompt").stderr
    for arguments in (("--limit", "100"), ("--limit", "100", "--json"), ("show", f"{HOSTILE}-1"), ("export",)):
        done = cases_here(settings, *arguments)
        assert done.exit_code == 0
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.stdout), arguments
    missing = cases_here(settings, "show", "\x1b[31mnobody")
    assert missing.exit_code == 1
    assert "no case file of '\\\\x1b[31mnobody'" in missing.stderr
    assert cases_here(settings, "--since", "yesterday").exit_code == 2
    assert cases_here(settings, "--segment", "app").exit_code == 2
    assert cases(settings, "forget").returncode == 2
    assert cases(settings, "forget", "evt-2", "--text", "leave", "--yes").returncode == 2  # else both would go
    assert cases(settings, "forget", "--text", "e", "--yes").returncode == 2
    assert cases(settings, "forget", "evt-2", "nobody", "--yes").returncode == 1
    by_text = cases(settings, "forget", "--text", "leave#3", "--yes")  # chunk ids leave#3, leave#30 to leave#39
    assert "11 case files removed" in by_text.stdout
    assert "leave#3" not in by_text.stderr
    assert cases(settings, "forget", "evt-4").returncode == 1  # nobody there to confirm
    assert store.find("evt-4")
    away = settings.model_copy(update={"redis": settings.redis.model_copy(
        update={"cases_url": f"redis://:secret@127.0.0.1:{free_port()}/0"})})  # fmt: skip
    refused = cases_here(away)
    assert refused.exit_code == 1
    assert "does not answer" in refused.stderr
    assert "secret" not in refused.stderr


@pytest.mark.full
def test_redis_away_holds_up_no_score_and_loses_no_case(kafka: str, tmp_path: Path) -> None:
    """Invariants 8 and 9."""
    port = free_port()
    kept = ("--appendonly", "yes", "--appendfsync", "always", "--dir", str(tmp_path))
    settings = settings_of(kafka, f"redis://127.0.0.1:{port}/0")
    store = open_store(settings)
    now = time.time()
    with monitor(settings, tmp_path) as running:
        with embedded_redis(tmp_path / "redis.log", *kept, port=port):
            append(settings, *(case_file(i, now - i) for i in range(100)))
            wait_until(holds(store, 100), 60, "100 cases")
            wait_until(lambda: committed(settings) == 100, 10, "commit of 100")
        wait_until(lambda: running.total("groundwatch_case_store_up") == 0, 20, "degraded")
        append(settings, b"\xff", *(case_file(i, now - i) for i in range(100, 300)), b"{}")
        scores = [orjson.dumps(score_record(i, now, {"faithfulness": 0.5})) for i in range(50)]
        produce(kafka, settings.topics.scores, scores)
        wait_until(lambda: running.total("groundwatch_scores_read_total", outcome="counted") == 50, 20, "scores go on")
        time.sleep(3)
        assert committed(settings) == 100
        assert running.get("/healthz") == (200, "ok\n")
        assert running.get("/readyz")[0] == 200
        with embedded_redis(tmp_path / "redis2.log", *kept, port=port):
            wait_until(holds(store, 300), 40, "nothing lost")
            wait_until(lambda: committed(settings) == 302, 10, "commit of 302")
            wait_until(lambda: running.total("groundwatch_case_store_up") == 1, 20, "up again")
            assert running.total("groundwatch_cases_read_total", outcome="stored") == 300
            assert running.total("groundwatch_cases_read_total", outcome="undecodable") == 2
            wait_until(lambda: running.total("groundwatch_case_lag_records") == 0, 10, "no lag")


CRASH = """
import os, threading, time
from consumer.case_reader import CaseReader
from consumer.case_store import open_store
from consumer.health import Pulse
from consumer.settings_source import load
settings = load(None, os.environ).settings
store = open_store(settings)
put = store.put
def put_and_die(cases, now):
    put(cases, now)
    os.kill(os.getpid(), 9)
store.put = put_and_die
stop, clock = threading.Event(), time.monotonic
CaseReader(settings, store, Pulse(clock), stop=stop, now=time.time, monotonic=clock).run()
"""


@pytest.mark.full
def test_killed_between_storing_and_committing(kafka: str, redis_url: str) -> None:
    """Stored, not committed: the next reader stores them again, and each is there once."""
    settings = settings_of(kafka, redis_url)
    now = time.time()
    append(settings, *(case_file(i, now - i) for i in range(40)))
    died = subprocess.run([sys.executable, "-c", CRASH], env=os.environ | environment(settings), timeout=60)
    assert died.returncode == -9
    store = open_store(settings)
    assert store.count(now) > 0
    assert committed(settings) == -1001
    before = redis.Redis.from_url(redis_url).zcard("{groundwatch}:cases:1:names")
    assert before == 2 * store.count(now)
    with Reading(settings, store) as reading:
        wait_until(lambda: committed(settings) == 40, 60, "everything committed")
        assert reading.value("cases_read_total", outcome="stored") == 40
    assert [case.record.id for case in store.select(CaseFilter())] == [f"evt-{i}" for i in range(40)]
    assert redis.Redis.from_url(redis_url).zcard("{groundwatch}:cases:1:names") == 80


def test_a_reader_that_cannot_store_leaves_its_cases_to_the_next(kafka: str, redis_url: str) -> None:
    settings = settings_of(kafka, redis_url)
    away = CaseStore(f"redis://127.0.0.1:{free_port()}/0", ttl_seconds=3600, most=100)
    now = time.time()
    append(settings, *(case_file(i, now - i) for i in range(30)))
    store = open_store(settings)
    with Reading(settings, store) as second:
        with Reading(settings, away) as first:
            append(settings, *(case_file(i, now - i) for i in range(30, 60)))
            wait_until(lambda: second.value("case_store_up") == 1, 30, "the second reader is at work")
            wait_until(lambda: first.pulse.check() == (True, "ok"), 5, "the first reader turns")
        wait_until(holds(store, 60), 40, "all of them stored by whoever can")
    assert committed(settings) == 60


def test_a_full_redis_keeps_the_newest(kafka: str, tmp_path: Path) -> None:
    with embedded_redis(tmp_path / "log", "--maxmemory", "4mb", "--maxmemory-policy", "noeviction") as url:
        settings = settings_of(kafka, url)
        store = open_store(settings)
        now = time.time()
        noise = [os.urandom(20_000).hex() for _ in range(150)]
        append(settings, *(case_file(i, now - 150 + i, question=noise[i]) for i in range(150)))
        with Reading(settings, store) as reading:
            wait_until(lambda: committed(settings) == 150, 90, "everything read")
            assert reading.value("cases_removed_total", reason="memory") > 0
        newest = [case.record.id for case in store.select(CaseFilter())]
        assert len(newest) > 10
        assert newest[:10] == [f"evt-{i}" for i in range(149, 139, -1)]


def test_without_a_url_one_line_says_that_cases_are_not_kept(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, "")
    with monitor(settings, tmp_path) as running:
        wait_until(lambda: "case files are not kept: redis.cases_url is not set" in running.log.read_text(), 30, "line")
        wait_until(lambda: running.get("/readyz")[0] == 200, 30, "ready")
        assert "groundwatch_cases_stored" not in running.samples()
    wrong = settings.model_copy(update={"redis": settings.redis.model_copy(update={"cases_url": "not-a-url"})})
    with monitor(wrong, tmp_path, "wrong") as running:
        assert running.process.wait(30) == 2
        assert "redis.cases_url: must read redis://HOST:PORT/DB" in running.log.read_text()
        assert "Traceback" not in running.log.read_text()
