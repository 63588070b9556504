"""Fixtures: a real Kafka, a real Redis; each on free ports, ended by their finalizers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.embedded import embedded_redis
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
