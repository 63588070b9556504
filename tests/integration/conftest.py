"""Fixtures: a real Kafka, a real Redis, the tools of Prometheus; each on free ports, ended by their finalizers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.embedded import embedded_redis
from tests.prometheus_tools import ABSENT, tools
from tests.services import KAFKA, kafka_cluster


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real Kafka, shared by all tests of the run: name topics and groups uniquely."""
    given = os.environ.get("GROUNDWATCH_TEST_KAFKA")
    if given:
        yield given
    elif KAFKA.exists():
        with kafka_cluster(tmp_path_factory.mktemp("kafka") / "k") as cluster:
            yield cluster.bootstrap
    else:
        pytest.skip("no real Kafka: ../shared/kafka is absent and GROUNDWATCH_TEST_KAFKA is not set")


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis of this test's own."""
    with embedded_redis(tmp_path / "redis.log") as url:
        yield url


@pytest.fixture(scope="session")
def prometheus_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tools of Prometheus are unpacked, once a run."""
    return tmp_path_factory.mktemp("prometheus-tools")


@pytest.fixture(scope="session")
def promtools(prometheus_folder: Path) -> list[str]:
    """Every promtool there is, the current one first."""
    return _found("promtool", prometheus_folder)


@pytest.fixture(scope="session")
def prometheus_binaries(prometheus_folder: Path) -> list[str]:
    """Every Prometheus there is, the current one first."""
    return _found("prometheus", prometheus_folder)


@pytest.fixture(scope="session")
def alerting_binaries(prometheus_folder: Path) -> dict[str, str]:
    """The current `prometheus` and `alertmanager`."""
    return {name: _found(name, prometheus_folder)[0] for name in ("prometheus", "alertmanager")}


def _found(name: str, folder: Path) -> list[str]:
    found = tools(name, folder)
    if not found:
        pytest.skip(ABSENT)
    return found
