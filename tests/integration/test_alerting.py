"""End to end: calm traffic, an incident, and Redis taken away. The right alert arrives in time, and only that one."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from consumer.demo.script import Fault
from tests.alerting_stack import CACHE_OPTIONS, SCALE, WINDOWS, Stack, redis, stack
from tests.processes import wait_until
from tests.prometheus_server import Told
from tests.prometheus_tools import ABSENT, tools

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

RATE = 3.0
METRICS = ("faithfulness", "topic_similarity")
"""Few, so that a busy machine keeps up."""
CALM_SECONDS = WINDOWS["1h"] + 20.0
SETTLE = 20.0
"""For scrape, evaluation, grouping and a busy machine."""
PROMISED = WINDOWS["1h"] + 300 / SCALE + SETTLE
"""The window has filled with bad answers, and `for: 5m` has passed, both on this time scale."""
QUALITY = {
    "GroundwatchFaithfulnessLow",
    "GroundwatchFlaggedBudgetFast",
    "GroundwatchFlaggedBudgetMedium",
    "GroundwatchChangeDetected",
    "GroundwatchDriftSpike",
}
"""What may be told of wrong answers; the first must be."""
REDIS = {"GroundwatchCacheDown", "GroundwatchCaseStoreDown"}


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("prometheus")
    found = {name: tools(name, folder) for name in ("prometheus", "alertmanager")}
    if not all(found.values()):
        pytest.skip(ABSENT)
    return {name: paths[0] for name, paths in found.items()}


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


def test_an_incident_is_told_in_time_and_a_lost_redis_is_told_as_such(
    kafka: str, binaries: dict[str, str], tmp_path: Path
) -> None:
    tag = uuid.uuid4().hex[:8]
    with (
        redis(tmp_path, *CACHE_OPTIONS) as cache,
        redis(tmp_path) as cases,
        stack(tmp_path, kafka, binaries, tag, cache=cache.url, cases=cases.url, rate=RATE, metrics=METRICS) as running,
    ):
        calm(running)
        incident(running)
        without_redis(running, cache.stop, cache.start, "GroundwatchCacheDown")
        without_redis(running, cases.stop, cases.start, "GroundwatchCaseStoreDown")
        without_monitor(running)


def calm(running: Stack) -> None:
    time.sleep(CALM_SECONDS)
    assert [(told.name, dict(told.labels), told.annotations["description"]) for told in running.receiver.told] == []
    assert running.firing() == set()
    samples = running.prometheus.query('groundwatch:rolling_samples:newest{window="1h",metric="faithfulness"}')
    assert len(samples) == 3 * 3 + 1, "every segment, those with `other` too, and all"
    assert max(value for labels, value in samples if labels["app"] == "all") > 100


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
    assert running.receiver.firing() <= QUALITY, "only what wrong answers explain"
    running.traffic.fault = Fault.NONE
    over = time.monotonic()
    wait_until(
        lambda: not {"GroundwatchFaithfulnessLow", "GroundwatchFlaggedBudgetFast"} & running.firing(),
        WINDOWS["1h"] + 2 * SETTLE, "the incident is over in Prometheus",
    )  # fmt: skip
    wait_until(
        lambda: bool(running.receiver.of("GroundwatchFaithfulnessLow", "resolved", since=over)), 2 * SETTLE, "resolved"
    )


def without_redis(running: Stack, stop: object, start: object, name: str) -> None:
    assert callable(stop)
    assert callable(start)
    began = time.monotonic()
    stop()
    wait_until(lambda: bool(running.receiver.of(name, "firing", since=began)), 60, f"{name} is told")
    time.sleep(SETTLE)
    told = running.receiver.firing(since=began)
    # What of the incident still stands in the long windows is told again; nothing new is.
    assert told - QUALITY == {name}
    assert "GroundwatchFaithfulnessLow" not in told
    start()
    wait_until(lambda: bool(running.receiver.of(name, "resolved", since=began)), 90, f"{name} is resolved")


def without_monitor(running: Stack) -> None:
    """Silence is told as silence."""
    began = time.monotonic()
    running.monitor.kill()
    wait_until(lambda: bool(running.receiver.of("GroundwatchTargetsGone", "firing", since=began)), 60, "it is told")
    told = running.receiver.firing(since=began)
    assert told - QUALITY <= {"GroundwatchTargetsGone", "GroundwatchTargetDown"}
    assert "GroundwatchFaithfulnessLow" not in told
