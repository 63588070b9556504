"""The embedding cache against a real Redis: it serves, it refuses, it hangs, it is gone; scoring goes on."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import redis

from consumer.cache import CachedEmbedder, Memory
from consumer.embedded import embedded_redis
from consumer.redis_vectors import RedisVectors
from consumer.vector_codec import cache_key
from metrics.metric import Text, Vector
from metrics.outcome import Unscored

BUDGET = 0.25
"""Seconds, where a test is about the budget."""
PATIENT = 30.0
"""Seconds, where it is not: what is over the budget is left out, and a busy machine takes longer than BUDGET."""


class Directions:
    """An embedder whose vectors depend on the text; counts what it computes."""

    identity, dimension = "directions@1", 8

    def __init__(self) -> None:
        self.computed: Counter[str] = Counter()

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        self.computed.update(text.content for text in texts)
        found: list[Vector | Unscored] = []
        for text in texts:
            raw = np.random.default_rng(abs(hash(text))).standard_normal(8)
            found.append(np.asarray(raw / np.linalg.norm(raw), np.float32))
        return found


class Setup:
    """One process's cache: an own memory and connection, over an embedder that may be shared."""

    def __init__(
        self,
        url: str,
        inner: Directions,
        *,
        memory: int = 0,
        budget: float = PATIENT,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[str] = Counter()
        remote = RedisVectors(
            url, budget_seconds=budget, ttl_seconds=3600, count=lambda k, n: self.counts.update({k: n}), now=now
        )
        self.embedder = CachedEmbedder(
            inner, precision="fp32", memory=Memory(memory), remote=remote, count_memory=lambda kind, n: None
        )

    def embed(self, *contents: str) -> list[Vector | Unscored]:
        return self.embedder.embed([Text("passage", content) for content in contents])


def texts(number: int, name: str = "t") -> list[str]:
    return [f"{name}{i}" for i in range(number)]


def test_another_process_finds_what_one_has_computed(redis_url: str) -> None:
    first, second = Directions(), Directions()
    computed = Setup(redis_url, first).embed(*texts(600))
    other = Setup(redis_url, second)
    found = other.embed(*texts(600))
    assert all(np.array_equal(a, b) for a, b in zip(computed, found, strict=True))
    assert not second.computed
    assert +other.counts == {"hit": 600}


def test_entries_end_within_the_last_tenth_of_their_time(redis_url: str) -> None:
    Setup(redis_url, Directions()).embed(*texts(100))
    client = redis.Redis.from_url(redis_url)
    left = [int(client.pttl(key)) for key in client.scan_iter()]  # type: ignore[arg-type]
    assert len(left) == 100
    assert 0.89 * 3_600_000 < min(left) < max(left) <= 3_600_000
    assert max(left) - min(left) > 100_000


# Field case 45: what is not a value of ours is a miss, is counted, and is overwritten.
@pytest.mark.parametrize("stored", [b"", b"[0.1, 0.2]", pickle.dumps([0.1]), b"\x00" * 44, np.ones(8).tobytes()])
def test_foreign_bytes_are_recomputed_and_overwritten(redis_url: str, stored: bytes) -> None:
    inner = Directions()
    key = cache_key(inner.identity, "fp32", Text("passage", "one"))
    client = redis.Redis.from_url(redis_url)
    client.set(key, stored)
    one = Setup(redis_url, inner)
    one.embed("one")
    assert +one.counts == {"corrupt": 1, "written": 1}
    again = Setup(redis_url, inner)
    again.embed("one")
    assert +again.counts == {"hit": 1}


def test_key_of_another_type_is_an_error_for_that_key_only(redis_url: str) -> None:
    inner = Directions()
    client = redis.Redis.from_url(redis_url)
    client.lpush(cache_key(inner.identity, "fp32", Text("passage", "list")), "x")
    one = Setup(redis_url, inner)
    assert len(one.embed("list", "plain")) == 2
    assert +one.counts == {"error": 1, "miss": 1, "written": 2}


@pytest.fixture
def frozen_redis(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A Redis and its process id, to be stopped in its tracks; thawed before it is ended."""
    with embedded_redis(tmp_path / "redis.log") as url:
        process = int(redis.Redis.from_url(url).info("server")["process_id"])  # type: ignore[index]
        try:
            yield url, process
        finally:
            os.kill(process, signal.SIGCONT)


# Field case 48: a Redis that hangs costs its budget, then is left out, then is used again.
def test_black_holed_redis_costs_the_budget_then_nothing(frozen_redis: tuple[str, int]) -> None:
    url, process = frozen_redis
    clock = [0.0]
    inner = Directions()
    one = Setup(url, inner, budget=BUDGET, now=lambda: clock[0] + time.monotonic())
    one.embed("before")
    os.kill(process, signal.SIGSTOP)
    started = time.monotonic()
    assert len(one.embed(*texts(40))) == 40
    assert time.monotonic() - started < 4 * BUDGET + 1.0, "a read that times out, and no write after it"
    started = time.monotonic()
    for i in range(50):
        one.embed(f"more{i}")
    assert time.monotonic() - started < 50 * BUDGET
    assert one.counts["timeout"] == 40
    assert one.counts["skipped"] == 50
    assert one.counts["write_skipped"] == 90
    os.kill(process, signal.SIGCONT)
    clock[0] += 60
    one.embed("after")
    assert one.counts["written"] == 2
    assert not isinstance(one.embed("before")[0], Unscored)
    assert inner.computed["before"] == 1


def test_new_connection_to_a_hanging_redis_is_bounded_too(frozen_redis: tuple[str, int]) -> None:
    url, process = frozen_redis
    os.kill(process, signal.SIGSTOP)
    one = Setup(url, Directions(), budget=BUDGET)
    started = time.monotonic()
    one.embed("x")
    assert time.monotonic() - started < 4 * BUDGET + 1.0
    assert one.counts["timeout"] == 1


def test_stopped_redis_is_left_out_and_found_again(tmp_path: Path) -> None:
    clock = [0.0]
    inner = Directions()
    with embedded_redis(tmp_path / "one.log") as url:
        one = Setup(url, inner, now=lambda: clock[0] + time.monotonic())
        one.embed("a")
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    assert len(one.embed("b")) == 1
    assert one.counts["error"] == 1
    with embedded_redis(tmp_path / "two.log", port=port) as again:
        assert again == url
        clock[0] += 60
        one.embed("c")
        assert one.counts["written"] == 2


def test_something_that_is_not_redis_is_an_error_like_any_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        one = Setup(f"redis://127.0.0.1:{port}/0", Directions(), budget=BUDGET)
        assert len(one.embed("x")) == 1
        assert one.counts["error"] + one.counts["timeout"] == 1


# Field case 49: full under noeviction, and read-only after a failover: writes are counted, reads go on.
def test_full_redis_is_still_read(tmp_path: Path) -> None:
    with embedded_redis(tmp_path / "r.log", "--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as url:
        inner = Directions()
        Setup(url, inner).embed("kept")
        client = redis.Redis.from_url(url)

        def fill() -> None:
            for i in range(10_000):
                client.set(f"fill{i}", b"x" * 10_000)

        with pytest.raises(redis.exceptions.OutOfMemoryError):
            fill()
        one = Setup(url, inner)
        assert len(one.embed("kept", *texts(20))) == 21
        assert +one.counts == {"hit": 1, "miss": 20, "write_error": 20}
        one.embed("kept", "other")
        assert one.counts["hit"] == 2
        assert one.counts["write_skipped"] == 1
        assert inner.computed["kept"] == 1


def test_read_only_replica_is_still_read(redis_url: str) -> None:
    inner = Directions()
    Setup(redis_url, inner).embed("kept")
    client = redis.Redis.from_url(redis_url)
    client.config_set("replica-serve-stale-data", "yes")
    client.replicaof("127.0.0.1", "1")
    one = Setup(redis_url, inner)
    one.embed("kept", "new")
    assert +one.counts == {"hit": 1, "miss": 1, "write_error": 1}


def test_hundred_keys_use_neither_mget_nor_a_transaction(redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    client.config_resetstat()
    Setup(redis_url, Directions()).embed(*texts(100))
    used = {
        str(name).removeprefix("cmdstat_"): figures["calls"] for name, figures in client.info("commandstats").items()
    }  # type: ignore[union-attr]
    assert used["get"] == 100
    assert used["set"] == 100
    assert not used.keys() & {"mget", "mset", "multi", "exec"}


# Field case 47: more callers than connections wait a little, then compute; nothing raises.
def test_twenty_callers_on_a_small_pool(redis_url: str) -> None:
    inner = Directions()
    one = Setup(redis_url, inner, budget=BUDGET)
    errors: list[BaseException] = []

    def call(name: str) -> None:
        try:
            for i in range(20):
                assert len(one.embed(f"{name}-{i}", f"shared-{i}")) == 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(f"c{n}",)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    connected = redis.Redis.from_url(redis_url).info("clients")["connected_clients"]  # type: ignore[index]
    assert int(connected) <= 5


def test_eviction_policy_is_read(redis_url: str) -> None:
    remote = RedisVectors(redis_url, budget_seconds=1, ttl_seconds=1, count=lambda kind, n: None)
    assert remote.eviction_policy() == "noeviction"
