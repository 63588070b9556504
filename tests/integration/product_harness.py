"""The whole product as its user runs it: one settings file, and `groundwatch` commands as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from consumer.case_store import CaseStore, open_store
from consumer.embedded import free_port
from consumer.settings_source import load
from tests.processes import Running, groundwatch, wait_until

Sections = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Product:
    """A scorer and a monitor with its pages at `address`."""

    folder: Path
    variables: Mapping[str, str]
    address: str
    scorer: Running
    monitor: Running
    store: CaseStore

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.address}{path}", timeout=60)

    def send(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Have `groundwatch send` put them on the topic."""
        file = self.folder / f"{uuid.uuid4().hex}.jsonl"
        file.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events), encoding="utf-8")
        run(self.variables, "send", str(file))

    def exemplars(self) -> str:
        """/metrics as Prometheus asks for it."""
        accepted = {"Accept": "application/openmetrics-text; version=1.0.0"}
        return httpx.get(f"http://{self.monitor.address}/metrics", headers=accepted).text


def variables_of(sections: Sections) -> dict[str, str]:
    """Settings as the environment has them."""
    return {
        f"GROUNDWATCH__{section}__{key}".upper(): value if isinstance(value, str) else json.dumps(value)
        for section, values in sections.items()
        for key, value in values.items()
    }


def run(variables: Mapping[str, str], *arguments: str) -> str:
    """What `groundwatch ARGUMENTS` says; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "consumer", *arguments],
        capture_output=True, text=True, timeout=180, env=os.environ | dict(variables),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def settings_for(kafka: str, cases_url: str, sections: Sections) -> dict[str, str]:
    """Settings with topics and groups of this test's own; `sections` are merged over them."""
    tag = uuid.uuid4().hex[:8]
    topics = {name: f"{name}-{tag}" for name in ("scores", "flagged", "deadletter", "redrive", "labels")}
    own: dict[str, Mapping[str, object]] = {
        "kafka": {"bootstrap_servers": kafka},
        "topics": {"events": [f"events-{tag}"], "partitions": 1, **topics},
        "redis": {"cases_url": cases_url},
        "scorer": {"group": f"scorer-{tag}"},
        "monitor": {"group": f"monitor-{tag}"},
    }
    return variables_of({name: {**own.get(name, {}), **sections.get(name, {})} for name in own | dict(sections)})


@contextmanager
def running_product(variables: Mapping[str, str], folder: Path) -> Iterator[Product]:
    """Topics are made, then scorer and monitor work meanwhile."""
    run(variables, "topics", "create")
    with ExitStack() as ends:
        scorer, monitor, pages = (f"127.0.0.1:{free_port()}" for _ in range(3))
        listen = variables_of({"metrics__scorer": {"listen": scorer}, "metrics__monitor": {"listen": monitor},
                               "pages": {"listen": pages}})  # fmt: skip
        environment = {**variables, **listen}
        product = Product(
            folder,
            environment,
            f"http://{pages}",
            ends.enter_context(groundwatch("score", scorer, folder / "scorer.log", environment)),
            ends.enter_context(groundwatch("monitor", monitor, folder / "monitor.log", environment)),
            open_store(load(None, environment).settings),
        )
        for running in (product.scorer, product.monitor):
            wait_until(partial(_ready, running), 90, "scorer and monitor are ready")
        yield product


def _ready(running: Running) -> bool:
    assert running.process.poll() is None, running.log.read_text()[-3000:]
    try:
        return running.get("/readyz")[0] == 200
    except OSError:
        return False
