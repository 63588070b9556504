"""SIGTERM and SIGINT at any moment: exit code 0 and soon, whatever the process is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consumer.embedded import free_port
from tests.integration.monitor_harness import ScoreLog
from tests.processes import groundwatch, wait_until
from tests.services import kafka_cluster

TAKES_LONG = """
import hashlib, sys
from consumer.stopping import heeded_signals
with heeded_signals() as stopping:
    if sys.argv[1] == "started":
        stopping.started(lambda: print("asked", flush=True))
    print("on", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"p", b"s", 10**8)  # a minute in C, like a client's call
"""


def away() -> dict[str, str]:
    return {
        "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
        "GROUNDWATCH__METRICS__SCORER__LISTEN": f"127.0.0.1:{free_port()}",
        "GROUNDWATCH__METRICS__MONITOR__LISTEN": f"127.0.0.1:{free_port()}",
        "GROUNDWATCH__SCORING__METRICS": '["faithfulness"]',
    }


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.full), signal.SIGINT])
@pytest.mark.parametrize("command", ["score", "monitor", "run"])
def test_who_waits_for_a_broker_says_so_and_leaves_at_once_with_0(
    command: str, number: signal.Signals, tmp_path: Path
) -> None:
    with groundwatch(command, "", tmp_path / "log", away()) as running:
        wait_until(lambda: "waiting for Kafka" in running.log.read_text(), 30, "a line that says what is awaited")
        assert running.process.poll() is None
        began = time.monotonic()
        running.process.send_signal(number)
        assert running.process.wait(10) == 0
        assert time.monotonic() - began < 5.0
        assert "Traceback" not in running.log.read_text()


@pytest.mark.parametrize("seconds", [0.6, 1.2, 2.0])
@pytest.mark.parametrize("command", ["score", "monitor", "run"])
def test_a_signal_during_imports_ends_with_0(command: str, seconds: float, tmp_path: Path) -> None:
    with groundwatch(command, "", tmp_path / "log", away()) as running:
        pid = running.process.pid
        wait_until(lambda: _heeds(pid), 20, "heeding SIGTERM")
        time.sleep(seconds - 0.6)
        assert running.terminate(5) == 0


def _heeds(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM (the kernel's list of caught signals)."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(("phase", "said", "code"), [("starting", "on\n", 0), ("started", "on\nasked\n", None)])
def test_a_signal_is_heard_though_the_main_thread_is_busy(phase: str, said: str, code: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TAKES_LONG, phase], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        heard = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        try:
            if code is None:
                heard += process.stdout.readline()
                assert process.poll() is None
            else:
                assert process.wait(3) == code
        finally:
            process.kill()
        assert heard == said


@pytest.mark.full
def test_the_monitor_leaves_in_time_though_the_brokers_hang(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path / "kafka") as cluster:
        log = ScoreLog(cluster.bootstrap).create()
        address = f"127.0.0.1:{free_port()}"
        environment = {
            "GROUNDWATCH__KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap,
            "GROUNDWATCH__TOPICS__SCORES": log.topic,
            "GROUNDWATCH__MONITOR__GROUP": log.group,
            "GROUNDWATCH__METRICS__MONITOR__LISTEN": address,
        }
        with groundwatch("monitor", address, tmp_path / "log", environment) as running:
            wait_until(lambda: running.total("groundwatch_monitor_active") == 1, 60, "active")
            cluster.control("freeze", "--broker", "1")
            try:
                time.sleep(6.0)  # a question to the broker is under way
                began = time.monotonic()
                running.terminate(30)
                assert time.monotonic() - began < 11.0
                assert "Traceback" not in running.log.read_text()
            finally:
                cluster.control("thaw", "--broker", "1")
