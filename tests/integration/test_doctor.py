from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import redis

from consumer.doctor import (
    Check,
    check_baseline,
    check_broker,
    check_client,
    check_model,
    check_redis,
    check_sampling,
    check_segments,
    examine,
)
from consumer.embedded import embedded_redis, free_port
from consumer.settings import Redis, Settings
from consumer.settings_source import load
from consumer.topics import create_topics
from tests.topic_making import make_topic


def groundwatch(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from consumer.cli import main; main()", *arguments],
        capture_output=True, text=True, timeout=120, env=os.environ | environ,
    )  # fmt: skip


def levels(checks: list[Check]) -> dict[str, str]:
    return {check.subject: check.level for check in checks}


@pytest.fixture
def topics() -> dict[str, object]:
    """Topic names of this test's own."""
    unique = uuid.uuid4().hex[:8]
    roles = ("scores", "flagged", "deadletter", "redrive", "labels")
    return {role: f"{unique}.{role}" for role in roles} | {"events": [f"{unique}.events"]}


def test_a_sound_installation_has_no_fail(kafka: str, topics: dict[str, object]) -> None:
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": kafka}, "topics": topics})
    create_topics(settings, 10)
    checks = list(check_broker(settings, 5))
    assert {check.level for check in checks} == {"ok"}, checks
    assert checks[0].found.startswith(f"{kafka} answers, speaks the protocol of Kafka ")
    assert len(checks) == 7


def test_missing_topics_and_a_compacted_score_topic_fail(kafka: str, topics: dict[str, object]) -> None:
    scores = str(topics["scores"])
    make_topic(kafka, scores, 1, cleanup_policy="compact")
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": kafka}, "topics": topics})
    by_subject = {check.subject: check for check in check_broker(settings, 5)}
    assert "compact" in by_subject[f"topic {scores}"].found
    assert by_subject[f"topic {scores}"].level == "fail"
    flagged = by_subject[f"topic {topics['flagged']}"]
    assert (flagged.level, flagged.advice) == ("fail", "run: groundwatch topics create")


def test_a_dead_broker_ends_within_seconds_with_a_non_zero_code() -> None:
    address = f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    said = groundwatch("doctor", "--timeout", "2", GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS=address)
    assert time.monotonic() - began < 15
    assert said.returncode == 1
    assert f"fail  broker: no answer from the broker at {address}" in said.stdout
    assert "Traceback" not in said.stdout + said.stderr
    # What does not need the broker is looked at all the same.
    assert "ok    settings: valid" in said.stdout


def test_credentials_are_never_printed(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with embedded_redis(tmp_path / "redis.log") as url:
        redis.Redis.from_url(url).config_set("requirepass", "right-secret")
        port = url.rpartition(":")[2]
        said = groundwatch(
            "doctor", "--timeout", "1",
            GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS=address,
            GROUNDWATCH__KAFKA__SECURITY_PROTOCOL="SASL_SSL",
            GROUNDWATCH__KAFKA__SASL_MECHANISM="PLAIN",
            GROUNDWATCH__KAFKA__SASL_USERNAME="watcher",
            GROUNDWATCH__KAFKA__SASL_PASSWORD="kafka-secret",
            GROUNDWATCH__REDIS__CACHE_URL=f"redis://user:wrong-secret@127.0.0.1:{port}",
            GROUNDWATCH__REDIS__CASES_URL=f"redis://:right-secret@127.0.0.1:{port}",
            GROUNDWATCH__EMBEDDING__MODEL="openai",
            GROUNDWATCH__EMBEDDING__ENDPOINT=f"http://user:endpoint-secret@{address}/v1",
            GROUNDWATCH__EMBEDDING__ENDPOINT_KEY="key-secret",
        )  # fmt: skip
    assert "secret" not in said.stdout + said.stderr
    assert "fail  cache: redis://***@127.0.0.1:" in said.stdout
    assert "ok    cases: redis://***@127.0.0.1:" in said.stdout
    assert "fail  model: http://***@" in said.stdout


def test_faulty_settings_are_one_line_each_and_exit_1() -> None:
    said = groundwatch("doctor", GROUNDWATCH__TOPICS__SCORE="x", GROUNDWATCH__SAMPLING__RATE="2")
    assert said.returncode == 1
    assert len(said.stdout.splitlines()) == 2
    assert all(line.startswith("fail  settings: ") for line in said.stdout.splitlines())
    assert "did you mean 'topics.scores'" in said.stdout
    assert said.stderr == ""


# Field case 50: a cache that never evicts refuses writes once it is full; case files must never be evicted.
@pytest.mark.parametrize(
    ("options", "cache", "cases"),
    [
        (("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "ok", "fail"),
        (("--maxmemory", "100mb", "--maxmemory-policy", "noeviction"), "warn", "ok"),
        (("--maxmemory", "0", "--maxmemory-policy", "allkeys-lru"), "warn", "fail"),
    ],
)
def test_redis_may_evict_for_the_cache_and_not_for_cases(
    tmp_path: Path, options: tuple[str, ...], cache: str, cases: str
) -> None:
    with embedded_redis(tmp_path / "redis.log", *options) as url:
        other = url.replace("/0", "/1")
        assert levels(list(check_redis(Redis(cache_url=url, cases_url=other)))) == {"cache": cache, "cases": cases}


def test_one_redis_for_cache_and_cases_fails(redis_url: str) -> None:
    assert levels(list(check_redis(Redis(cache_url=redis_url, cases_url=redis_url))))["cases"] == "fail"


def test_a_dead_redis_fails_and_no_redis_warns() -> None:
    began = time.monotonic()
    dead = list(check_redis(Redis(cache_url=f"redis://127.0.0.1:{free_port()}/0", cases_url="rediss://127.0.0.1:1/0")))
    assert levels(dead) == {"cache": "fail", "cases": "fail"}
    assert time.monotonic() - began < 5
    assert levels(list(check_redis(Redis()))) == {"cache": "warn", "cases": "ok"}


def test_a_model_that_is_not_there_says_how_to_prepare_it(tmp_path: Path) -> None:
    settings = Settings.model_validate({"embedding": {"models_dir": str(tmp_path)}})
    (check,) = check_model(settings, {})
    assert (check.level, check.advice) == ("fail", "groundwatch models prepare")


def test_a_model_by_name_that_is_not_there_says_where_to_prepare_it(tmp_path: Path) -> None:
    settings = Settings.model_validate({"embedding": {"models_dir": str(tmp_path), "model": "someone/some-model"}})
    (check,) = check_model(settings, {})
    assert check.level == "fail"
    assert "groundwatch models prepare someone/some-model" in check.advice
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_no_metric_needs_is_not_asked_for(tmp_path: Path) -> None:
    values = {"embedding": {"models_dir": str(tmp_path)}, "scoring": {"metrics": ["faithfulness"]}}
    settings = Settings.model_validate(values)
    (check,) = check_model(settings, {})
    assert check.level == "ok"
    assert "no metric" in check.found


def test_an_altered_model_file_is_found(tmp_path: Path) -> None:
    from metrics.model_store import ready_model

    folder = ready_model(tmp_path, "multilingual-e5-small")
    settings = Settings.model_validate({"embedding": {"models_dir": str(tmp_path)}})
    (sound,) = check_model(settings, {})
    assert sound.level == "ok", sound
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, os.SEEK_END)
        last = weights.read(1)
        weights.seek(-1, os.SEEK_END)
        weights.write(bytes([last[0] ^ 1]))
    (damaged,) = check_model(settings, {})
    assert damaged.level == "fail"
    assert "model.safetensors" in damaged.found


def test_a_baseline_that_does_not_read_fails(tmp_path: Path) -> None:
    (none,) = check_baseline(None)
    assert none.level == "ok"
    (gone,) = check_baseline(tmp_path / "gone.json")
    assert (gone.level, gone.advice) == ("fail", "check baseline.file, or make it: groundwatch calibrate")
    assert "gone.json: cannot be read" in gone.found
    other = tmp_path / "other.json"
    other.write_text("{}")
    (broken,) = check_baseline(other)
    assert broken.level == "fail"
    assert str(other) in broken.found


def test_apps_that_are_not_named_are_warned_about() -> None:
    named = Settings.model_validate({"segments": {"allow": {"app": ["hr"], "lang": ["en", "zh"]}}})
    assert [check.level for check in check_segments(named.segments)] == ["ok"]
    assert [check.level for check in check_segments(Settings().segments)] == ["warn"]


def test_sampling_says_by_what_it_samples_and_what_it_costs() -> None:
    by_header = Settings.model_validate({"sampling": {"rate": 0.1, "id_header": "event-id"}})
    rules = [{"name": "unhappy", "negative_feedback": True}]
    with_rule = Settings.model_validate({"sampling": {"rate": 0.1, "id_header": "event-id", "always": rules}})
    (plain,), (ruled,) = check_sampling(by_header.sampling), check_sampling(with_rule.sampling)
    assert plain.found == "rate 0.1 by header event-id"
    assert "always-rules (unhappy) make it decode every event" in ruled.found


def test_multiprocess_mode_is_refused() -> None:
    # Field case 54.
    loaded = load(None, {})
    dead = loaded.settings.model_copy(
        update={"kafka": Settings().kafka.model_copy(update={"bootstrap_servers": "127.0.0.1:1"})}
    )
    loaded = type(loaded)(dead, loaded.origin)
    checks = list(examine(loaded, {"PROMETHEUS_MULTIPROC_DIR": "/tmp/x"}, 0.5))
    assert levels(checks)["environment"] == "fail"


def test_a_client_property_that_nobody_knows_fails() -> None:
    loaded = load(None, {"GROUNDWATCH__KAFKA__CONSUMER__FETCH_MIN_BYTE": "1"})
    (check,) = check_client(loaded.settings.kafka)
    assert check.level == "fail"
    assert "fetch.min.byte" in check.found
