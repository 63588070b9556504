"""A monitor with its pages, over cases that the pipeline makes: scorer, topics, monitor and Redis are real."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from consumer.case_store import CaseStore, open_store
from consumer.embedded import free_port
from consumer.settings import Settings
from consumer.topics import create_topics
from metrics.judge import Evidence, Judgement, JudgeRequest, Label, Verdict
from metrics.outcome import Unscored
from tests.integration.scorer_harness import HashEmbedder, produce, running_scorer, test_settings
from tests.processes import Running, groundwatch, wait_until

ALLOW = {"app": ["helpdesk", "shop"], "lang": ["en", "zh"]}


@dataclass(frozen=True)
class NumbersJudge:
    """A rule for these tests: a statement stands if all its numbers stand in the first passage; without any, it is not
    found there."""

    name: str = "numbers"
    identity: str = "numbers/1"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [Judgement(tuple(self._verdict(s.text, r) for s in r.statements)) for r in requests]

    def _verdict(self, text: str, request: JudgeRequest) -> Verdict:
        chunk = request.contexts[0]
        numbers = set(re.findall(r"\d+", text))
        evidence = (Evidence(0, chunk.id, 0, min(len(chunk.text), 60), chunk.text[:60]),)
        if not numbers:
            return Verdict(Label.NOT_FOUND, "no passage speaks of it", (), 0.4)
        if numbers <= set(re.findall(r"\d+", chunk.text)):
            return Verdict(Label.SUPPORTED, "the same numbers", evidence, 0.9)
        return Verdict(Label.CONTRADICTED, "another number", evidence, 0.1)


def event(number: int, answer: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "timestamp": time.time(),
        "question": f"How many days of leave does grade {number} have?",
        "contexts": [
            {"id": f"leave#{number}", "text": f"Grade {number} has {20 + number} days of leave a year. It is paid."},
            {"id": "canteen#1", "text": "The canteen opens at 11:30."},
        ],
        "answer": answer,
        "labels": {"app": "helpdesk", "lang": "en", "model": "m-1"},
        "trace_id": f"trace-{number}",
    } | changes


@dataclass(frozen=True)
class Site:
    """A running monitor with pages, and what a browser asks of it."""

    settings: Settings
    running: Running
    address: str
    store: CaseStore | None
    client: httpx.Client

    @property
    def cases(self) -> CaseStore:
        assert self.store is not None
        return self.store

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(f"{self.address}{path}", headers=headers)

    def log(self) -> str:
        return self.running.log.read_text()


def settings_of(kafka: str, cases_url: str, **sections: dict[str, object]) -> Settings:
    values: dict[str, dict[str, object]] = {
        "redis": {"cases_url": cases_url},
        "segments": {"allow": ALLOW},
        "cases": {"audit_share": 1.0},
        "thresholds": {"default": {"faithfulness": 0.75}},
    }
    settings = test_settings(
        kafka, **{name: values.get(name, {}) | sections.get(name, {}) for name in values | sections}
    )
    group = settings.monitor.model_copy(update={"group": f"{settings.scorer.group}-monitor"})
    settings = settings.model_copy(update={"monitor": group})
    create_topics(settings, 20)
    return settings


def environment(settings: Settings, metrics: str, pages: Mapping[str, str]) -> dict[str, str]:
    values = {
        "kafka__bootstrap_servers": settings.kafka.bootstrap_servers,
        "topics__scores": settings.topics.scores,
        "topics__flagged": settings.topics.flagged,
        "topics__deadletter": settings.topics.deadletter,
        "topics__labels": settings.topics.labels,
        "monitor__group": settings.monitor.group,
        "redis__cases_url": settings.redis.cases_url,
        "metrics__monitor__listen": metrics,
        "segments__allow": '{"app":["helpdesk","shop"],"lang":["en","zh"]}',
        **{f"pages__{key}": value for key, value in pages.items()},
    }
    return {f"GROUNDWATCH__{key.upper()}": value for key, value in values.items()}


@contextmanager
def serving(settings: Settings, folder: Path, **pages: str) -> Iterator[Site]:
    """A monitor whose pages answer; `pages` are settings of theirs."""
    metrics = f"127.0.0.1:{free_port()}"
    listen = pages.pop("listen", f"127.0.0.1:{free_port()}")
    port = listen.rpartition(":")[2]
    variables = environment(settings, metrics, {"listen": listen, **pages})
    with groundwatch("monitor", metrics, folder / "monitor.log", variables) as running, httpx.Client() as client:
        site = Site(
            settings,
            running,
            f"http://127.0.0.1:{port}",
            open_store(settings) if settings.redis.cases_url else None,
            client,
        )
        wait_until(lambda: _answers(site), 60, "the pages answer")
        yield site


def _answers(site: Site) -> bool:
    assert site.running.process.poll() is None, site.log()
    try:
        return site.get("/login").status_code == 200
    except httpx.TransportError:
        return False


def scored(site: Site, events: Sequence[dict[str, Any] | bytes], kept: int) -> None:
    """Put events on the topic and wait until the monitor has counted as many scores, and kept as many cases, as `kept`:
    every answer is audited."""
    before = site.running.total("groundwatch_scores_read_total")
    with running_scorer(site.settings, HashEmbedder(), NumbersJudge()):
        produce(site.settings.kafka.bootstrap_servers, site.settings.topics.events[0], list(events))
        wait_until(lambda: site.cases.count(time.time()) == kept, 60, f"{kept} cases in Redis")
        wait_until(
            lambda: site.running.total("groundwatch_scores_read_total") >= before + kept, 60, "all scores counted"
        )
