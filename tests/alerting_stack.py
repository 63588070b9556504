"""Kafka, Redis, both workers, Prometheus with the rules at a shorter time scale, Alertmanager, and traffic."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from consumer.client import Client
from consumer.demo.knowledge import APPS, LANGUAGES, load_documents
from consumer.demo.script import Fault
from consumer.demo.service import HelpDesk
from consumer.embedded import embedded_redis, free_port
from consumer.settings_source import load
from consumer.topics import create_topics
from deploy.prometheus.generate import RULES, files
from deploy.prometheus.table import TABLE, Table, read_table
from metrics.event import Event
from tests.processes import Running, groundwatch, wait_until
from tests.prometheus_server import Receiver, Server, alertmanager, prometheus, webhook

SCALE = 60.0
"""An hour of the rules is a minute here; `for: 5m` is five seconds."""
UNHURRIED: Mapping[str, Mapping[str, Any]] = {
    "OffsetStuck": {"limit": "30m", "for": "10m"},
    "NoInput": {"span": "1h"},
    "NoScores": {"span": "30m"},
    "MonitorStalled": {"span": "30m"},
    "ScoringLag": {"span": "30m", "limit": "30m"},
    "CacheDown": {"span": "10m"},
    "TargetDown": {"for": "12m"},
    "TargetsGone": {"for": "12m"},
}
"""Rows that watch how fast a worker goes or answers: a batch takes the same seconds whatever the time scale of the
rules, and a busy machine is not the fault that is tested. In minutes of the rules, which are seconds here."""
WINDOWS = {"5m": 300 / SCALE, "1h": 3600 / SCALE, "24h": 86400 / SCALE}
DEPLOY = TABLE.parents[1]
CACHE_OPTIONS = ("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")


@dataclass
class Traffic:
    """Answers of the demo's help desk at a steady rate, with the fault that is at work now."""

    client: Client
    rate: float
    fault: Fault = Fault.NONE
    logged: Callable[[Event], Event] = lambda event: event
    """What becomes of an event before it is logged."""

    def run(self, stop: threading.Event) -> None:
        desk = HelpDesk(load_documents(), seed=7)
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            self.client.log(self.logged(desk.handle(self.fault, time.time()).event))
            due += 1 / self.rate


@dataclass
class Stack:
    """Everything that runs; `environment` holds the settings, for commands that join in."""

    environment: Mapping[str, str]
    table: Table
    scorer: Running
    monitor: Running
    prometheus: Server
    alertmanager: Server
    receiver: Receiver
    traffic: Traffic

    def firing(self) -> set[str]:
        """Alerts that fire in Prometheus now."""
        return {labels["alertname"] for labels, _ in self.prometheus.query('ALERTS{alertstate="firing"}')}


def environment(bootstrap: str, tag: str, **sections: Mapping[str, Any]) -> dict[str, str]:
    """Settings of both workers as environment: topics of their own, short windows, the demo's segments."""
    values: dict[str, dict[str, Any]] = {
        "kafka": {"bootstrap_servers": bootstrap},
        "topics": {
            "events": [f"events-{tag}"], "scores": f"scores-{tag}", "flagged": f"flagged-{tag}",
            "deadletter": f"dead-{tag}", "redrive": f"redrive-{tag}", "labels": f"labels-{tag}", "partitions": 2,
        },
        "segments": {"allow": {"app": list(APPS), "lang": list(LANGUAGES)}},
        "scorer": {"group": f"scorer-{tag}", "commit_interval_seconds": 0.3},
        "monitor": {"group": f"monitor-{tag}", "windows": WINDOWS},
    }  # fmt: skip
    found = {}
    for section in values.keys() | sections.keys():
        for key, value in (values.get(section, {}) | dict(sections.get(section, {}))).items():
            text = value if isinstance(value, str) else orjson.dumps(value).decode()
            found[f"GROUNDWATCH__{section}__{key}".upper()] = text
    return found


def unhurried(table: Table) -> Table:
    rows = {name: {**row, **UNHURRIED.get(name, {})} for name, row in table.rows.items()}
    return replace(table, rows=rows, handed_out={})


def prometheus_config(table: Table, rules: Path, scorer: str, monitor: str, alerts: str) -> dict[str, Any]:
    """The configuration that ships, with addresses and intervals of this test."""
    config: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(rules)]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [alerts]}]}]
    addresses = {table.scorer_job: scorer, table.monitor_job: monitor}
    for job in config["scrape_configs"]:
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": [addresses[job["job_name"]]]}]
    return config


def alertmanager_config(url: str) -> dict[str, Any]:
    """The configuration that ships, with the receiver of this test and without waiting for company."""
    text = (DEPLOY / "alertmanager" / "alertmanager.yaml").read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    config["route"] |= {"group_wait": "1s", "group_interval": "2s"}
    for route in config["route"]["routes"]:
        route["group_wait"] = "1s"
    for receiver in config["receivers"]:
        for hook in receiver["webhook_configs"]:
            hook["url"] = url
    return config


@contextlib.contextmanager
def stack(
    folder: Path,
    bootstrap: str,
    binaries: Mapping[str, str],
    tag: str,
    *,
    cache_url: str,
    cases_url: str,
    rate: float,
    metrics: Sequence[str],
    **sections: Mapping[str, Any],
) -> Iterator[Stack]:
    """Everything, with calm traffic, from the moment that the first score is counted.

    `binaries`: of `prometheus` and `alertmanager`; `cache_url` and `cases_url` are two Redis; `rate`: answers a
    second, of which the scorer makes `metrics`; `sections`: more settings.
    """
    addresses = {name: f"127.0.0.1:{free_port()}" for name in ("scorer", "monitor")}
    own = environment(
        bootstrap, tag,
        redis={"cache_url": cache_url, "cases_url": cases_url},
        scoring={"metrics": list(metrics)},
        **{f"metrics__{name}": {"listen": address} for name, address in addresses.items()},
        **sections,
    )  # fmt: skip
    settings = load(None, own).settings
    create_topics(settings, 30)
    table = unhurried(read_table(settings, scale=SCALE))
    rules = folder / RULES
    rules.write_text(files(table)[RULES], encoding="utf-8")
    stop = threading.Event()
    with contextlib.ExitStack() as within:
        workers = {
            name: within.enter_context(groundwatch(command, addresses[name], folder / f"{name}.log", own))
            for name, command in (("scorer", "score"), ("monitor", "monitor"))
        }
        client = within.enter_context(Client.to(bootstrap, settings.topics.events[0]))
        traffic = Traffic(client, rate)
        thread = threading.Thread(target=traffic.run, args=(stop,), daemon=True)
        thread.start()
        within.callback(thread.join)
        within.callback(stop.set)
        wait_until(lambda: workers["monitor"].total("groundwatch_scores_read_total") > 10, 240, "the first scores")
        # Every passage is new at first. What is tested begins when the scorer keeps up.
        wait_until(lambda: workers["scorer"].total("groundwatch_lag_events") < 3 * rate, 240, "the scorer keeps up")
        receiver = within.enter_context(webhook())
        manager = within.enter_context(
            alertmanager(binaries["alertmanager"], folder / "alertmanager", alertmanager_config(receiver.url))
        )
        config = prometheus_config(table, rules, addresses["scorer"], addresses["monitor"], manager.address)
        server = within.enter_context(prometheus(binaries["prometheus"], folder / "prometheus", config))
        wait_until(lambda: server.query("sum(up)")[:1] == [({}, 2.0)], 60, "both workers are scraped")
        yield Stack(own, table, workers["scorer"], workers["monitor"], server, manager, receiver, traffic)


@dataclass
class Redis:
    """A Redis that a test can take away and bring back on the same port."""

    folder: Path
    options: tuple[str, ...]
    port: int
    _running: contextlib.ExitStack

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._running.enter_context(embedded_redis(self.folder / f"{self.port}.log", *self.options, port=self.port))

    def stop(self) -> None:
        self._running.close()


@contextlib.contextmanager
def redis(folder: Path, *options: str) -> Iterator[Redis]:
    server = Redis(folder, options, free_port(), contextlib.ExitStack())
    server.start()
    try:
        yield server
    finally:
        server.stop()
