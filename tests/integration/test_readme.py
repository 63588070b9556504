"""Every command of the README is run, in its order, in a folder of its own, against a real broker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from consumer.decode import Decoder
from consumer.embedded import free_port
from consumer.settings import Settings
from tests.topic_making import make_topic

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVICES = {
    "groundwatch run": ("scorer", "monitor"),
    "groundwatch score": ("scorer",),
    "groundwatch monitor": ("monitor",),
}
SET_UP = ("make demo", "make test", "make setup", "source .venv/bin/activate")
"""What a reader does before there is a command to run: these cannot run inside the tests that they start."""


def steps() -> list[str]:
    """The commands of all `sh` blocks; a here-document belongs to its command."""
    found: list[str] = []
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.S | re.M):
        lines = iter(block.splitlines())
        for line in lines:
            step = [line]
            if match := re.search(r"<<'(\w+)'", line):
                for following in lines:
                    step.append(following)
                    if following == match[1]:
                        break
            if line.strip():
                found.append("\n".join(step))
    return found


@dataclass(frozen=True)
class Place:
    """Where the README's reader is: a folder, and settings that point at the services of this test."""

    folder: Path
    environ: dict[str, str]
    ports: dict[str, int]

    def run(self, step: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.replace("localhost:9109", f"127.0.0.1:{self.ports['monitor']}")],
            cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=240,
        )  # fmt: skip

    @contextlib.contextmanager
    def serving(self, step: str) -> Iterator[None]:
        """The step as a process of its own, ready; asked to stop afterwards, as Ctrl-C would."""
        log = self.folder / f"{step.replace(' ', '-')}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(step.split(), cwd=self.folder, env=self.environ, stdout=out, stderr=out)
        try:
            for service in SERVICES[step]:
                self._await_ready(process, service, log)
            yield
            process.send_signal(signal.SIGINT)
            process.wait(40)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        assert process.returncode in (0, -signal.SIGINT), log.read_text(errors="replace")[-3000:]

    def _await_ready(self, process: subprocess.Popen[bytes], service: str, log: Path) -> None:
        deadline = time.monotonic() + 120
        while not answers(f"http://127.0.0.1:{self.ports[service]}/readyz"):
            said = log.read_text(errors="replace")[-3000:]
            assert process.poll() is None, f"{service} ended: {said}"
            assert time.monotonic() < deadline, f"{service} was not ready in time: {said}"
            time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
def place(kafka: str, tmp_path: Path) -> Place:
    unique = uuid.uuid4().hex[:8]
    ports = {"scorer": free_port(), "monitor": free_port()}
    binaries = Path(sys.executable).parent
    if not (binaries / "groundwatch").exists():
        pytest.skip("groundwatch is not installed beside this Python")
    environ = os.environ | {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": kafka,
        "GROUNDWATCH__TOPICS__EVENTS": f'["{unique}.events"]',
        "GROUNDWATCH__SCORER__GROUP": f"{unique}-scorer",
        "GROUNDWATCH__MONITOR__GROUP": f"{unique}-monitor",
        "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{ports['scorer']}",
        "GROUNDWATCH__METRICS__MONITOR__LISTEN": f"127.0.0.1:{ports['monitor']}",
    }
    for role in ("scores", "flagged", "deadletter", "redrive", "labels"):
        environ[f"GROUNDWATCH__TOPICS__{role.upper()}"] = f"{unique}.{role}"
    return Place(tmp_path, environ, ports)


def test_every_make_target_that_is_named_exists() -> None:
    pages = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^ *make ([a-z-]+)", pages, re.M))
    assert {"demo", "test", "test-full", "check", "bench"} <= targets
    for target in targets:
        asked = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert asked.returncode == 0, asked.stderr


def test_the_readme_names_the_two_commands_first() -> None:
    assert steps()[:2] == ["make demo", "make test"]


def test_the_client_of_the_readme_logs_an_event(kafka: str) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.S | re.M)
    topic = f"{uuid.uuid4().hex[:8]}.events"
    make_topic(kafka, topic, 1)
    code = code.replace("localhost:9092", kafka).replace("qa.events", topic)
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        event = Decoder(Settings().decode).decode(message.value() or b"", fallback_id="x", broker_time=None).event
    finally:
        consumer.close()
    assert event.question == "How many days of leave do I have?"
    assert event.labels["app"] == "hr-helpdesk"


@pytest.mark.full
def test_every_command_of_the_readme_works(place: Place) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    with contextlib.ExitStack() as running:
        ran = 0
        for step in steps():
            if step in SET_UP:
                continue
            ran += 1
            if step in SERVICES:
                if step == "groundwatch score":
                    running.close()  # the reader stops `run` before the two parts are started
                running.enter_context(place.serving(step))
                continue
            done = place.run(step)
            deadline = time.monotonic() + 60
            while step.startswith("curl") and "rolling_score{" not in done.stdout and time.monotonic() < deadline:
                time.sleep(0.5)
                done = place.run(step)
            assert done.returncode == 0, f"{step}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if step.startswith("curl"):
                assert "groundwatch_rolling_score{" in done.stdout
    assert ran >= 10
    # The settings that the README shows are settings.
    shown = re.findall(r"^```toml\n(.*?)^```", README, re.S | re.M)
    assert shown
    for number, toml in enumerate(shown):
        with (place.folder / "groundwatch.toml").open("a") as file:
            file.write(toml)
        done = place.run("groundwatch settings")
        assert done.returncode == 0, f"block {number}: {done.stderr}"
