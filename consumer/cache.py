"""The embedding cache: a least-recently-used memory in front of Redis, behind the same protocol as an embedder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from consumer.redis_vectors import RedisVectors
from consumer.vector_codec import cache_key
from metrics.blank import is_blank
from metrics.metric import Embedder, Text, Vector
from metrics.outcome import Unscored

MEMORY_RESULTS = ("hit", "miss")
MOST_BYTES = 64 * 1024 * 1024
Count = Callable[[str, int], None]


class Memory:
    """Least-recently-used vectors, bounded in number and in bytes. Safe for threads."""

    def __init__(self, entries: int, most_bytes: int = MOST_BYTES) -> None:
        self._entries = entries
        self._most_bytes = most_bytes
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, key: bytes) -> Vector | None:
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, key: bytes, vector: Vector) -> None:
        with self._lock:
            before = self._vectors.pop(key, None)
            self._bytes -= before.nbytes if before is not None else 0
            self._vectors[key] = vector
            self._bytes += vector.nbytes
            while self._vectors and (len(self._vectors) > self._entries or self._bytes > self._most_bytes):
                self._bytes -= self._vectors.popitem(last=False)[1].nbytes


class CachedEmbedder:
    """An `Embedder` that asks memory, then Redis, then the embedder behind it.

    Only finite unit vectors are kept. A text that several threads ask for at once is computed by one of them.
    `precision` is part of the key: vectors of another precision are other vectors.
    """

    def __init__(
        self,
        inner: Embedder,
        *,
        precision: str,
        memory: Memory,
        remote: RedisVectors | None,
        count_memory: Callable[[str, int], None],
    ) -> None:
        self.inner = inner
        self._precision = precision
        self._memory = memory
        self._remote = remote
        self._count = count_memory
        self._lock = threading.Lock()
        self._computing: dict[bytes, Future[Vector | Unscored]] = {}

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        """Raises: what the embedder behind it raises; nothing of Redis."""
        blank = [text for text in texts if is_blank(text.content)]
        known: dict[Text, Vector | Unscored] = {}
        if blank:
            # Nothing to look up: there must never be an entry for it. The embedder says what it is.
            known |= zip(blank, self.inner.embed(blank), strict=True)
        identity = self.identity
        wanted = (text for text in dict.fromkeys(texts) if text not in known)
        keys = {text: cache_key(identity, self._precision, text) for text in wanted}
        missing: dict[bytes, Text] = {}
        for text, key in keys.items():
            vector = self._memory.get(key)
            if vector is None:
                missing[key] = text
            else:
                known[text] = vector
        self._count("hit", len(keys) - len(missing))
        self._count("miss", len(missing))
        if missing:
            known |= self._fetch(missing)
        return [known[text] for text in texts]

    def _fetch(self, missing: dict[bytes, Text]) -> dict[Text, Vector | Unscored]:
        ours: dict[bytes, Text] = {}
        theirs: dict[bytes, Future[Vector | Unscored]] = {}
        with self._lock:
            for key, text in missing.items():
                if key in self._computing:
                    theirs[key] = self._computing[key]
                else:
                    ours[key] = text
                    self._computing[key] = Future()
        # What is ours is finished before anything of others is waited for: no two callers can wait for each other.
        try:
            results = self._compute(ours)
        except BaseException as error:
            for _, future in self._taken_off(ours):
                future.set_exception(error)
            raise
        for key, future in self._taken_off(ours):
            future.set_result(results[key])
        found = {ours[key]: result for key, result in results.items()}
        return found | {missing[key]: future.result() for key, future in theirs.items()}

    def _taken_off(self, ours: dict[bytes, Text]) -> list[tuple[bytes, Future[Vector | Unscored]]]:
        with self._lock:
            return [(key, self._computing.pop(key)) for key in ours]

    def _compute(self, wanted: dict[bytes, Text]) -> dict[bytes, Vector | Unscored]:
        results: dict[bytes, Vector | Unscored] = {}
        if self._remote is not None:
            results |= self._remote.read(list(wanted), self.dimension)
        rest = [key for key in wanted if key not in results]
        fresh: dict[bytes, Vector] = {}
        for key, result in zip(rest, self.inner.embed([wanted[key] for key in rest]) if rest else [], strict=True):
            results[key] = result
            if not isinstance(result, Unscored):
                result.setflags(write=False)
                fresh[key] = result
        if self._remote is not None and fresh:
            self._remote.write(fresh)
        for key, result in results.items():
            if not isinstance(result, Unscored):
                self._memory.put(key, result)
        return results
