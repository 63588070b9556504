"""End to end: calm, Redis taken away, an incident, a monitor killed. The right alert comes in time, and only that."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from consumer.demo.script import Fault
from tests.alerting_stack import CACHE_OPTIONS, SCALE, WINDOWS, Redis, Stack, redis, stack
from tests.processes import wait_until
from tests.prometheus_server import Told

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

RATE = 4.0
METRICS = ("faithfulness", "topic_similarity")
"""Few, so that a busy machine keeps up."""
SETTLE = 6.0
"""For scrape, evaluation, grouping and a busy machine."""
PROMISED = WINDOWS["1h"] + 300 / SCALE + 15
"""The window has filled with bad answers, and `for: 5m` has passed, both on this time scale."""
QUALITY = {
    "GroundwatchFaithfulnessLow",
    "GroundwatchFlaggedBudgetFast",
    "GroundwatchFlaggedBudgetMedium",
    "GroundwatchFlaggedBudgetSlow",
    "GroundwatchTopicDrift",
    "GroundwatchChangeDetected",
}
"""What may be told of wrong answers; the first must be."""
REDIS = {"GroundwatchCacheDown", "GroundwatchCaseStoreDown"}


def looked_at(told: Told) -> None:
    """What a person gets: values filled in, links that lead to this segment."""
    notes = told.annotations
    for text in notes.values():
        assert "<no value>" not in text
        assert "error" not in text.lower() or told.name == "GroundwatchFlaggedBudgetFast"
        assert "{{" not in text
    assert notes["runbook_url"].endswith(f"{told.name}.md")
    assert "/d/groundwatch-" in notes["dashboard"]
    assert not any(character.isdigit() and "." in value for value in told.labels.values() for character in value)


def test_a_lost_redis_and_an_incident_are_told_in_time_each_by_its_own_alert(
    kafka: str, alerting_binaries: dict[str, str], tmp_path: Path
) -> None:
    tag = uuid.uuid4().hex[:8]
    with (
        redis(tmp_path, *CACHE_OPTIONS) as cache,
        redis(tmp_path) as cases,
        stack(
            tmp_path,
            kafka,
            alerting_binaries,
            tag,
            cache_url=cache.url,
            cases_url=cases.url,
            rate=RATE,
            metrics=METRICS,
        ) as running,
    ):
        calm(running)
        without_redis(running, cache, cases)
        incident(running)
        without_monitor(running)


def calm(running: Stack) -> None:
    every = 'groundwatch:rolling_samples:newest{window="1h",metric="faithfulness",app="all"} > 60'
    wait_until(lambda: bool(running.prometheus.query(every)), 120, "there is something to judge by")
    time.sleep(SETTLE)
    assert [(told.name, dict(told.labels), told.annotations["description"]) for told in running.receiver.told] == []
    assert running.firing() == set()


def without_redis(running: Stack, *servers: Redis) -> None:
    """Its own alerts, and no quality alert."""
    began = time.monotonic()
    for server in servers:
        server.stop()
    wait_until(lambda: running.receiver.firing(since=began) >= REDIS, 60, "the lost Redis are told")
    time.sleep(SETTLE)
    assert running.receiver.firing() == REDIS
    for server in servers:
        server.start()
    wait_until(
        lambda: all(running.receiver.of(name, "resolved", since=began) for name in REDIS),
        60,
        "it is told that they are back",
    )


def incident(running: Stack) -> None:
    began = time.monotonic()
    running.traffic.fault = Fault.OLD_KNOWLEDGE
    wait_until(lambda: bool(running.receiver.of("GroundwatchFaithfulnessLow", "firing")), PROMISED, "told in time")
    print(f"told after {time.monotonic() - began:.1f} s of {PROMISED:.0f} s promised")
    first = running.receiver.of("GroundwatchFaithfulnessLow", "firing")[0]
    looked_at(first)
    assert first.labels["severity"] == "page"
    assert first.labels["app"] in ("hr-helpdesk", "it-helpdesk", "all")
    assert "n = " in first.annotations["description"]
    assert f"segment=app%3D{first.labels['app']}" in first.annotations["cases"] or first.labels["app"] == "all"
    time.sleep(SETTLE)
    assert running.receiver.firing(since=began) <= QUALITY, "only what wrong answers explain"
    running.traffic.fault = Fault.NONE
    over = time.monotonic()
    wait_until(
        lambda: not {"GroundwatchFaithfulnessLow", "GroundwatchFlaggedBudgetFast"} & running.firing(),
        WINDOWS["1h"] + 30, "the incident is over in Prometheus",
    )  # fmt: skip
    wait_until(lambda: bool(running.receiver.of("GroundwatchFaithfulnessLow", "resolved", since=over)), 30, "resolved")


def without_monitor(running: Stack) -> None:
    """Silence is told as silence."""
    began = time.monotonic()
    running.monitor.kill()
    wait_until(lambda: bool(running.receiver.of("GroundwatchTargetsGone", "firing", since=began)), 60, "it is told")
    told = running.receiver.firing(since=began)
    # What of the incident still stands in the long windows is told again; nothing new is.
    assert told - QUALITY <= {"GroundwatchTargetsGone", "GroundwatchTargetDown"}
    assert "GroundwatchFaithfulnessLow" not in told
