"""Cached values in Redis: batched, inside a time budget, and never the reason why anything stops."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from consumer.breaker import Breaker

log = logging.getLogger(__name__)

RESULTS = ("hit", "miss", "corrupt", "timeout", "error", "skipped", "written", "write_error", "write_skipped")
"""Per key: found; not there; there but not believed (recomputed and overwritten); over the time budget; Redis or the
network failed; not asked because the breaker is open; and the same of writes."""
BATCH = 256
"""Keys in one pipeline: some 400 kB of values, so that the budget can be looked at in between."""
CONNECTIONS = 4
Count = Callable[[str, int], None]
V = TypeVar("V")


class RedisValues:
    """Reads and writes of one pipeline each. Nothing here raises for the sake of Redis.

    Commands go one by one inside a pipeline without MULTI: an MGET or a transaction over many keys would fail on a
    cluster. Reads and writes have a breaker each: a server that is full or read-only is still read.
    """

    def __init__(
        self,
        url: str,
        *,
        kept: str,
        budget_seconds: float,
        ttl_seconds: float,
        count: Count,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`kept` says in log lines what the values are.

        Raises:
            ValueError: not a Redis URL.
        """
        self._client = redis.Redis(
            connection_pool=redis.BlockingConnectionPool.from_url(
                url,
                max_connections=CONNECTIONS,
                timeout=budget_seconds,
                socket_timeout=budget_seconds,
                socket_connect_timeout=budget_seconds,
                # Retries would multiply the budget; what fails is computed instead.
                retry=Retry(NoBackoff(), 0),
                health_check_interval=0,
                decode_responses=False,
                protocol=2,
            )
        )
        self._kept = kept
        self._budget = budget_seconds
        self._ttl = ttl_seconds
        self._count = count
        self._now = now
        self._reads = Breaker(now)
        self._writes = Breaker(now)

    def read(self, keys: Sequence[bytes], decode: Callable[[bytes, bytes], V | None]) -> dict[bytes, V]:
        """Those of `keys` that are there and believed: `decode(key, value)` is None for what is not to be believed.

        Takes at most about the budget.
        """
        found: dict[bytes, V] = {}
        deadline = self._now() + self._budget
        for batch in _batches(keys):
            if self._now() >= deadline:
                self._count("timeout", len(batch))
                continue
            if not self._reads.allows():
                self._count("skipped", len(batch))
                continue
            replies = self._run([("GET", key) for key in batch], self._reads, "timeout", "error")
            for key, reply in zip(batch, replies, strict=False):
                if isinstance(reply, bytes):
                    value = decode(key, reply)
                    self._count("corrupt" if value is None else "hit", 1)
                    if value is not None:
                        found[key] = value
                else:
                    # A reply that is an error (of another type under our key) is as good as nothing.
                    self._count("miss" if reply is None else "error", 1)
        return found

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Store, each for the time-to-live less up to a tenth: entries of one moment shall not end in one moment."""
        deadline = self._now() + self._budget
        for batch in _batches(list(values)):
            if self._now() >= deadline or self._reads.is_open or not self._writes.allows():
                self._count("write_skipped", len(batch))
                continue
            commands = [("SET", key, values[key], "PX", self._lifetime(key)) for key in batch]
            replies = self._run(commands, self._writes, "write_error", "write_error")
            refused = [reply for reply in replies if isinstance(reply, redis.RedisError)]
            self._count("write_error", len(refused))
            self._count("written", len(replies) - len(refused))
            if refused:
                self._writes.failed()
                log.warning("Redis refuses to store %s, those that it has are still read: %s", self._kept, refused[0])
                if isinstance(refused[0], redis.exceptions.ReadOnlyError):
                    # After a failover: the next connection may reach the new primary.
                    self._client.connection_pool.disconnect(inuse_connections=False)

    def _run(
        self, commands: Sequence[tuple[str | bytes | int, ...]], breaker: Breaker, timeout: str, error: str
    ) -> list[object]:
        """Replies in order; empty, and counted, when the connection failed."""
        try:
            pipeline: Any = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[object] = pipeline.execute(raise_on_error=False)
        except redis.TimeoutError:
            self._failed(breaker, "did not answer in time")
            self._count(timeout, len(commands))
        except (redis.RedisError, OSError, ValueError) as fault:
            # ValueError: bytes that are not the protocol at all.
            self._failed(breaker, str(fault))
            self._count(error, len(commands))
        else:
            breaker.succeeded()
            return replies
        return []

    def _failed(self, breaker: Breaker, why: str) -> None:
        breaker.failed()
        log.warning("%s in Redis are left out for a while: %s", self._kept, why)

    def _lifetime(self, key: bytes) -> int:
        """Milliseconds; by the key, so that a re-run does the same."""
        share = int(key[-6:], 16) / 0xFFFFFF
        return max(1, int(1000 * self._ttl * (1.0 - 0.1 * share)))

    def eviction_policy(self) -> str | None:
        """`maxmemory-policy` of the server; None where it does not say."""
        try:
            found = self._client.config_get("maxmemory-policy")
        except (redis.RedisError, OSError, ValueError):
            return None
        values = {_text(name): _text(value) for name, value in dict(found).items()}
        return values.get("maxmemory-policy")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _batches(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), BATCH):
        yield keys[start : start + BATCH]
