"""Real services for the tests, and where the shared material lies."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SHARED = Path(os.environ.get("GROUNDWATCH_SHARED", Path(__file__).parents[2] / "shared"))
KAFKA = SHARED / "kafka" / "kafka"


@dataclass(frozen=True)
class Cluster:
    """A real Apache Kafka started for a test; `directory` names it to the start script."""

    bootstrap: str
    directory: Path

    def control(self, action: str, *arguments: str) -> None:
        """`kill`, `stop`, `freeze`, `thaw` or `restart`; e.g. `control("kill", "--broker", "2")`."""
        subprocess.run(
            [str(KAFKA), action, "--dir", str(self.directory), *arguments],
            check=True, stdout=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip


@contextmanager
def kafka_cluster(directory: Path, brokers: int = 1, *config: str) -> Iterator[Cluster]:
    """Start a cluster of 1 or 3 brokers and stop it afterwards, whatever the test did."""
    command = [str(KAFKA), "start", "--dir", str(directory), "--brokers", str(brokers)]
    for setting in config:
        command += ["--config", setting]
    try:
        started = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        yield Cluster(json.loads(started.stdout)["bootstrap_servers"], directory)
    finally:
        subprocess.run([str(KAFKA), "stop", "--dir", str(directory)], stdout=subprocess.DEVNULL, timeout=120)
