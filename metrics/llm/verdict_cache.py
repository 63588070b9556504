"""Where verdicts are kept between events: in production the same statements meet the same passages again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol


class VerdictCache(Protocol):
    """Keys are 64 hex digits made by `cache_key`; values are short JSON. Never raises: what fails is a miss."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """One value or None a key, in order."""
        ...

    def put_many(self, values: Mapping[str, bytes]) -> None: ...


class NoCache:
    """A `VerdictCache` that keeps nothing."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [None] * len(keys)

    def put_many(self, values: Mapping[str, bytes]) -> None:
        return None


def cache_key(*parts: str) -> str:
    """64 hex digits of everything that a verdict depends on (design: invariant 7); parts are length-prefixed."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()
