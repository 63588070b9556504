"""Verdicts in memory and in a real Redis: exact keys, checked values, and a Redis that fails is a miss."""

from __future__ import annotations

from collections import Counter

import redis

from consumer.judging.verdict_store import VerdictStore, decode_verdict, encode_verdict, redis_key
from consumer.redis_values import RedisValues
from metrics.llm.verdict_cache import cache_key

KEY = cache_key("model", "en/1", "verdict", "a claim", "passages")
VALUE = b'{"verdict": "supported"}'


class Store:
    """A store over one Redis, and what it counted."""

    def __init__(self, url: str | None, entries: int = 100) -> None:
        self.memory: Counter[str] = Counter()
        self.redis: Counter[str] = Counter()
        remote = url and RedisValues(
            url, kept="verdicts", budget_seconds=0.5, ttl_seconds=60, count=lambda r, n: self.redis.update({r: n})
        )
        self.cache = VerdictStore(
            entries=entries, remote=remote or None, count_memory=lambda r, n: self.memory.update({r: n})
        )


def test_what_one_worker_judged_another_knows(redis_url: str) -> None:
    first, second = Store(redis_url), Store(redis_url)
    assert first.cache.get_many([KEY]) == [None]
    first.cache.put_many({KEY: VALUE})
    other = cache_key("model", "en/2", "verdict", "a claim", "passages")
    assert second.cache.get_many([other, KEY, KEY]) == [None, VALUE, VALUE]
    assert (second.redis["hit"], second.redis["miss"]) == (1, 1)
    assert second.cache.get_many([KEY]) == [VALUE]
    assert second.redis["hit"] == 1, "the second time it is in memory"
    client = redis.Redis.from_url(redis_url)
    assert 50_000 < client.pttl(redis_key(KEY)) <= 60_000


def test_what_is_not_ours_is_a_miss_and_is_written_over(redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    place = redis_key(KEY)
    stored = encode_verdict(place, VALUE)
    elsewhere = encode_verdict(redis_key("0" * 64), VALUE)
    for wrong in (VALUE, b"", stored[:-1], stored + b"x", stored.replace(b"supported", b"contested"), elsewhere):
        client.set(place, wrong)
        store = Store(redis_url)
        assert store.cache.get_many([KEY]) == [None]
        assert store.redis["corrupt"] == 1
    client.delete(place)
    client.lpush(place, "of another type")
    store = Store(redis_url)
    assert store.cache.get_many([KEY]) == [None]
    assert store.redis["error"] == 1
    store.cache.put_many({KEY: VALUE})
    assert Store(redis_url).cache.get_many([KEY]) == [VALUE]


def test_a_redis_that_is_away_is_a_miss() -> None:
    store = Store("redis://127.0.0.1:9/0")
    store.cache.put_many({KEY: VALUE})
    assert store.cache.get_many([KEY, "0" * 64]) == [VALUE, None]


def test_memory_is_bounded() -> None:
    store = Store(None, entries=3)
    store.cache.put_many({str(n): VALUE for n in range(5)})
    assert store.cache.get_many([str(n) for n in range(5)]) == [None, None, VALUE, VALUE, VALUE]
    assert (store.memory["hit"], store.memory["miss"]) == (3, 2)
    store.cache.put_many({"long": b"x" * 1_000_000})
    assert store.cache.get_many(["long"]) == [None]


def test_a_value_is_bound_to_its_key() -> None:
    assert decode_verdict(b"a", encode_verdict(b"a", VALUE)) == VALUE
    assert decode_verdict(b"b", encode_verdict(b"a", VALUE)) is None
    assert decode_verdict(b"a", encode_verdict(b"a", b"")) == b""
