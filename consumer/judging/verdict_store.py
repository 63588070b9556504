"""Verdicts kept between events: a least-recently-used memory in front of Redis, as a `VerdictCache`."""

from __future__ import annotations

import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from consumer.redis_values import RedisValues

SCHEMA = 1
"""Version of key and value together: raised when either changes, so that old entries are simply not found."""
MAGIC = b"GWj"
_HEADER = struct.Struct("<3sBII")
"""Magic, schema, length, CRC-32 of key and value."""
MOST_VALUE = 100_000
MOST_BYTES = 32 * 1024 * 1024
MEMORY_CACHE, REDIS_CACHE = "verdict_memory", "verdict_redis"
Count = Callable[[str, int], None]


def redis_key(key: str) -> bytes:
    return b"groundwatch:verdict:v%d:%s" % (SCHEMA, key.encode())


def encode_verdict(key: bytes, value: bytes) -> bytes:
    """A 12-byte header and the value."""
    return _HEADER.pack(MAGIC, SCHEMA, len(value), zlib.crc32(value, zlib.crc32(key))) + value


def decode_verdict(key: bytes, stored: bytes) -> bytes | None:
    """The value stored under `key`; None for anything else: another version, cut short, damaged, stored under another
    key (a reply that belongs to another request)."""
    if len(stored) < _HEADER.size:
        return None
    magic, schema, length, checksum = _HEADER.unpack_from(stored)
    value = stored[_HEADER.size :]
    if (magic, schema, length) != (MAGIC, SCHEMA, len(value)) or checksum != zlib.crc32(value, zlib.crc32(key)):
        return None
    return value


class VerdictStore:
    """A `metrics.llm.verdict_cache.VerdictCache`: nothing here raises, what fails is a miss. Safe for threads.

    Keys are the judging's own: they say model, prompts, statement and passages. `remote` None keeps verdicts in this
    process only.
    """

    def __init__(
        self, *, entries: int, remote: RedisValues | None, count_memory: Count, most_bytes: int = MOST_BYTES
    ) -> None:
        """`count_memory(result, number)` with result `hit` or `miss`."""
        self._entries = entries
        self._most_bytes = most_bytes
        self._remote = remote
        self._count = count_memory
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """One value or None a key, in order."""
        found: dict[str, bytes] = {}
        unique = list(dict.fromkeys(keys))
        with self._lock:
            for key in unique:
                value = self._memory.get(key)
                if value is not None:
                    self._memory.move_to_end(key)
                    found[key] = value
        missing = [key for key in unique if key not in found]
        self._count("hit", len(found))
        self._count("miss", len(missing))
        if self._remote is not None and missing:
            places = {redis_key(key): key for key in missing}
            read = {places[place]: value for place, value in self._remote.read(list(places), decode_verdict).items()}
            self._remember(read)
            found |= read
        return [found.get(key) for key in keys]

    def put_many(self, values: Mapping[str, bytes]) -> None:
        usable = {key: value for key, value in values.items() if len(value) <= MOST_VALUE}
        self._remember(usable)
        if self._remote is not None and usable:
            places = {redis_key(key): value for key, value in usable.items()}
            self._remote.write({place: encode_verdict(place, value) for place, value in places.items()})

    def _remember(self, values: Mapping[str, bytes]) -> None:
        with self._lock:
            for key, value in values.items():
                self._bytes += len(value) - len(self._memory.pop(key, b""))
                self._memory[key] = value
            while self._memory and (len(self._memory) > self._entries or self._bytes > self._most_bytes):
                self._bytes -= len(self._memory.popitem(last=False)[1])
