"""Vectors in Redis."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from consumer.redis_values import Count, RedisValues
from consumer.vector_codec import decode_vector, encode_vector
from metrics.metric import Vector


class RedisVectors:
    """Embeddings by cache key (`consumer.vector_codec.cache_key`). Nothing here raises for the sake of Redis."""

    def __init__(
        self,
        url: str,
        *,
        budget_seconds: float,
        ttl_seconds: float,
        count: Count,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises:
        ValueError: not a Redis URL.
        """
        self._values = RedisValues(
            url, kept="embeddings", budget_seconds=budget_seconds, ttl_seconds=ttl_seconds, count=count, now=now
        )

    def read(self, keys: Sequence[bytes], dimension: int) -> dict[bytes, Vector]:
        """Those of `keys` that are there and believed. Takes at most about the budget."""
        return self._values.read(keys, lambda key, value: decode_vector(key, value, dimension))

    def write(self, vectors: Mapping[bytes, Vector]) -> None:
        self._values.write({key: encode_vector(key, vector) for key, vector in vectors.items()})

    def eviction_policy(self) -> str | None:
        """`maxmemory-policy` of the server; None where it does not say."""
        return self._values.eviction_policy()
