"""The product as its user runs it: `groundwatch ...` as a child process, ended by its own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families


@dataclass
class Running:
    """One child; `address` is its metrics listener."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def samples(self) -> dict[str, list[tuple[Mapping[str, str], float]]]:
        """All samples of /metrics by name."""
        found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    def total(self, name: str, **labels: str) -> float:
        """Sum of the samples of `name` that have all of `labels`; 0 while the listener is not up."""
        try:
            samples = self.samples().get(name, [])
        except (OSError, urllib.error.URLError):
            return 0.0
        return sum(value for own, value in samples if labels.items() <= own.items())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self, seconds: float = 30) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


@contextmanager
def groundwatch(command: str, address: str, log: Path, environment: Mapping[str, str]) -> Iterator[Running]:
    """`groundwatch COMMAND` with settings from `environment`; ended afterwards whatever the test did.

    Its pages, if it has any and nothing else is said, are on a port of their own.
    """
    environment = {"GROUNDWATCH__PAGES__LISTEN": "127.0.0.1:0"} | dict(environment)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "consumer", command],
            env=os.environ | environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    running = Running(process, address, log)
    try:
        yield running
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
