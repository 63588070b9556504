"""SASL_SSL (SCRAM) with both clients on a real Kafka, with exactly the ACLs of docs/production.md (field case 20)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from consumer.embedded import free_port
from consumer.label import label_of
from consumer.label_lines import label_line
from consumer.settings import Settings
from consumer.topics import create_topics
from tests.case_files import audited
from tests.integration.scorer_harness import HashEmbedder, event, produce, running_scorer
from tests.processes import Running, groundwatch, wait_until
from tests.secured_kafka import Acl, SecuredKafka, secured_kafka
from tests.services import KAFKA

pytestmark = pytest.mark.full
PAGE = Path(__file__).parents[2] / "docs" / "production.md"
USERS = ("scorer", "monitor", "redrive")


def documented_acls() -> list[Acl]:
    """The table of the docs."""
    rows = re.findall(
        r"^\| (scorer|monitor|redrive) \| (topic|group) \| (\S+) \| (\w+) \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    return [Acl(*row) for row in rows]


def rights(user: str, *names: str) -> list[Acl]:
    wanted = [acl for acl in documented_acls() if acl.user == user and acl.name in names]
    return [acl for acl in wanted if acl.operation != "describe"]


@dataclass(frozen=True)
class Secured:
    kafka: SecuredKafka

    def settings(self, user: str, **changes: Any) -> Settings:
        """As that user; `changes` go into `[kafka]`."""
        return Settings.model_validate(self.values(user, **changes))

    def values(self, user: str, **changes: Any) -> dict[str, Any]:
        kafka: dict[str, Any] = {
            "bootstrap_servers": self.kafka.secured,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password": password(user),
            "ssl_ca_file": str(self.kafka.ca),
        }
        return {
            "kafka": kafka | changes,
            "scoring": {"metrics": ("question_answer_similarity", "topic_similarity"), "sketch": False},
            "scorer": {"commit_interval_seconds": 0.2},
            "monitor": {"rebuild_deadline_seconds": 20.0},
        }

    def environment(self, user: str, **changes: Any) -> dict[str, str]:
        found = {}
        for section, keys in self.values(user, **changes).items():
            for key, value in keys.items():
                text = value if isinstance(value, str) else orjson.dumps(value).decode()
                found[f"GROUNDWATCH__{section}__{key}".upper()] = text
        return found


def password(user: str) -> str:
    return f"secret of {user}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if not KAFKA.exists():
        pytest.skip("no real Kafka that can be secured: ../shared/kafka is absent")
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        create_topics(Settings.model_validate({"kafka": {"bootstrap_servers": kafka.plain}}), 30)
        for user in USERS:
            kafka.add_user(user, password(user))
        kafka.allow(documented_acls())
        yield Secured(kafka)


def run(
    command: str, environment: Mapping[str, str], *options: str, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "consumer", command, *options],
        env=os.environ | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def last_line(said: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in said.stdout + said.stderr, said.stderr[-3000:]
    return (said.stdout + said.stderr).strip().splitlines()[-1]


def monitor_as(secured: Secured, folder: Path, name: str, user: str = "monitor", **changes: Any) -> Any:
    address = f"127.0.0.1:{free_port()}"
    environment = secured.environment(user, **changes) | {"GROUNDWATCH__METRICS__MONITOR__LISTEN": address}
    return groundwatch("monitor", address, folder / f"{name}.log", environment)


def test_the_docs_list_acls_for_every_process() -> None:
    acls = documented_acls()
    assert {acl.user for acl in acls} == set(USERS)
    assert len(acls) >= 15
    assert {acl.operation for acl in acls} == {"read", "write", "describe"}  # and no create


def test_events_are_scored_counted_and_redriven_with_these_rights_alone(secured: Secured, tmp_path: Path) -> None:
    settings = secured.settings("scorer")
    with monitor_as(secured, tmp_path, "monitor") as monitor, running_scorer(settings, HashEmbedder()) as scorer:
        produce(secured.kafka.plain, "qa.events", [event(n) for n in range(50)])
        produce(secured.kafka.plain, "qa.events", [b"not json"])
        wait_until(lambda: scorer.ended()["scored"] == 50, 60, "50 scored")
        wait_until(lambda: scorer.ended()["dead_lettered"] == 1, 30, "one dead letter")
        wait_until(lambda: counted(monitor) == 50, 60, "50 counted by the monitor")
        wait_until(lambda: monitor.total("groundwatch_monitor_uncommitted_records") == 0, 30, "offsets committed")
    sent = run("redrive", secured.environment("redrive"), "--reason", "not_json")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    assert "1" in sent.stdout
    checked = run("doctor", secured.environment("scorer"))
    assert "SSL" not in checked.stdout.replace("SASL_SSL", "")
    assert "ok" in next(line for line in checked.stdout.splitlines() if "broker" in line)


def label_lines(folder: Path, *numbers: int) -> Path:
    """Whole labels, as `label export` writes them."""
    now = time.time()
    labels = [label_of(audited(n, now - 60), "good", by="anna", note="", now=now) for n in numbers]
    file = folder / "labels.jsonl"
    file.write_text("\n".join(map(label_line, labels)), encoding="utf-8")
    return file


def test_labels_are_written_and_read_with_these_rights_alone(secured: Secured, tmp_path: Path) -> None:
    environment = secured.environment("monitor")
    with monitor_as(secured, tmp_path, "monitor") as monitor:
        wait_until(lambda: monitor.total("groundwatch_monitor_active") == 1, 60, "an active monitor")
        said = run("label", environment, "import", str(label_lines(tmp_path, 1, 2, 3)))
        assert (said.returncode, last_line(said)) == (0, "3 labels written")
        wait_until(lambda: monitor.total("groundwatch_labels_read_total", outcome="corrects") == 3, 30, "labels read")
    assert len(run("label", environment, "export").stdout.splitlines()) == 3
    refused = run("label", secured.environment("scorer"), "import", str(label_lines(tmp_path, 4)))
    assert refused.returncode == 1
    assert "this user may not write to the topic qa.labels; grant it" in last_line(refused)


def test_a_monitor_that_may_not_read_labels_goes_on_without(secured: Secured, tmp_path: Path) -> None:
    (missing,) = [acl for acl in rights("monitor", "qa.labels") if acl.operation == "read"]
    secured.kafka.forbid(missing)
    try:
        with monitor_as(secured, tmp_path, "monitor") as monitor:
            told = "labels cannot be read yet: this user may not read topic qa.labels; grant it"
            wait_until(lambda: told in monitor.log.read_text(), 60, "one line")
            wait_until(lambda: monitor.total("groundwatch_monitor_active") == 1, 60, "an active monitor")
            secured.kafka.allow([missing])
            wait_until(lambda: monitor.total("groundwatch_labels_read_total") > 0, 60, "labels once it may")
            assert monitor.log.read_text().count(told) == 1
    finally:
        secured.kafka.allow([missing])


def counted(monitor: Running) -> float:
    assert monitor.process.poll() is None, monitor.log.read_text()[-3000:]
    return monitor.total("groundwatch_scores_read_total", outcome="counted")


@pytest.mark.parametrize(
    ("command", "changes", "told"),
    [("monitor", {"sasl_password": "wrong"}, "uthentication failed"),
     ("topics", {"sasl_username": "nobody"}, "uthentication failed"),
     ("monitor", {"ssl_ca_file": "other"}, "certificate"), ("topics", {"ssl_ca_file": "other"}, "certificate")],
    ids=["password", "user", "authority", "authority-topics"],
)  # fmt: skip
def test_wrong_credentials_are_told_in_one_line(
    secured: Secured, command: str, changes: dict[str, str], told: str
) -> None:
    if "ssl_ca_file" in changes:
        changes = {"ssl_ca_file": str(secured.kafka.other_ca)}
    listen = {"GROUNDWATCH__METRICS__MONITOR__LISTEN": f"127.0.0.1:{free_port()}"}
    options = ["show"] if command == "topics" else []
    said = run(command, secured.environment("monitor", **changes) | listen, *options)
    assert said.returncode not in (0, None)
    assert told in last_line(said)


def test_the_scorer_tells_wrong_credentials_in_one_line(secured: Secured) -> None:
    """Its check at the start, without the model that it loads before."""
    from consumer.health import Pulse
    from consumer.scorer import ScorerStopped
    from consumer.scoring_process import await_topics

    with pytest.raises(ScorerStopped, match="uthentication failed"):
        await_topics(secured.settings("scorer", sasl_password="wrong"), Pulse(time.monotonic))
    with pytest.raises(ScorerStopped, match="certificate"):
        await_topics(secured.settings("scorer", ssl_ca_file=str(secured.kafka.other_ca)), Pulse(time.monotonic))


def test_a_sasl_user_without_a_sasl_protocol_is_refused() -> None:
    said = run("monitor", {"GROUNDWATCH__KAFKA__SASL_USERNAME": "scorer"})
    assert said.returncode == 2
    assert "security_protocol" in said.stderr


@pytest.mark.parametrize("missing", rights("monitor", "qa.scores", "groundwatch-monitor"), ids=str)
def test_a_monitor_without_a_right_ends_with_one_line(secured: Secured, tmp_path: Path, missing: Acl) -> None:
    secured.kafka.forbid(missing)
    if missing.resource == "topic":  # it may see the topic, and not read it
        secured.kafka.allow([Acl("monitor", "topic", missing.name, "describe")])
    try:
        with monitor_as(secured, tmp_path, "monitor") as monitor:
            code = monitor.process.wait(90)
            said = monitor.log.read_text()
        assert code not in (0, None), said[-2000:]
        assert "Traceback" not in said, said[-4000:]
        assert missing.name in said.strip().splitlines()[-1], said[-2000:]
        assert "uthori" in said.strip().splitlines()[-1], said[-2000:]
    finally:
        secured.kafka.allow([missing])


def test_a_monitor_that_may_not_see_the_topic_ends_with_one_line(secured: Secured, tmp_path: Path) -> None:
    secured.kafka.add_user("stranger", password("stranger"))
    with monitor_as(secured, tmp_path, "monitor", "stranger") as monitor:
        assert monitor.process.wait(60) == 1
        assert "qa.scores" in monitor.log.read_text().strip().splitlines()[-1]


@pytest.mark.parametrize(
    "missing",
    [
        acl
        for acl in documented_acls()
        if acl.user == "scorer" and acl.name in ("qa.events", "qa.scores", "groundwatch-scorer")
    ],
    ids=lambda acl: f"{acl.name}-{acl.operation}",
)
def test_a_scorer_without_a_right_stops_with_one_line(secured: Secured, missing: Acl) -> None:
    secured.kafka.forbid(missing)
    if missing.resource == "topic":
        secured.kafka.allow([Acl("scorer", "topic", missing.name, "describe")])
    try:
        with running_scorer(secured.settings("scorer"), HashEmbedder()) as scorer:
            produce(secured.kafka.plain, "qa.events", [event(1000)])
            wait_until(lambda: bool(scorer.failure), 60, "it stops")
            (fault,) = scorer.failure
        assert "uthoriz" in str(fault)
        # Of a group or an event topic the client does not tell the name; what to grant is said all the same.
        assert missing.name in str(fault) or "grant read on the event topics and the group" in str(fault)
        assert "\n" not in str(fault)
    finally:
        secured.kafka.allow([missing])
