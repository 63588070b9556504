"""Vectors on the disk between runs of a bench: embedding some thousand texts takes minutes on two cores."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from metrics.embedding import LocalEmbedder, batches
from metrics.metric import Embedder, Text, Vector
from metrics.outcome import Reason, Unscored

Make = Callable[[Sequence[Text]], list[Vector | Unscored]]
BATCH = 64


class KeptVectors:
    """An embedder that asks the one behind it only for what the file does not hold."""

    def __init__(self, identity: str, dimension: int, make: Make, file: Path) -> None:
        self.identity, self.dimension = identity, dimension
        self._make = make
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(file)
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB)")

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        missing = [text for text in dict.fromkeys(texts) if text.content.strip() and self._kept(text) is None]
        missing.sort(key=lambda text: len(text.content))
        for at in range(0, len(missing), BATCH):
            some = missing[at : at + BATCH]
            for text, vector in zip(some, self._make(some), strict=True):
                if isinstance(vector, np.ndarray):
                    row = self._key(text), vector.astype("<f4").tobytes()
                    self._file.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", row)
            self._file.commit()
            if len(missing) > BATCH:
                print(f"  embedded {min(at + BATCH, len(missing))} of {len(missing)}", flush=True)
        found = [self._kept(text) for text in texts]
        return [Unscored(Reason.EMPTY_TEXT) if vector is None else vector for vector in found]

    def _kept(self, text: Text) -> Vector | None:
        row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
        return None if row is None else np.frombuffer(row[0], "<f4").astype(np.float32)

    def _key(self, text: Text) -> str:
        return hashlib.sha256(repr((self.identity, text.role, text.content)).encode()).hexdigest()


def kept(embedder: Embedder, file: Path) -> KeptVectors:
    """`embedder` itself, remembered."""
    return KeptVectors(embedder.identity, embedder.dimension, embedder.embed, file)


def first_window(embedder: LocalEmbedder, file: Path) -> KeptVectors:
    """What the sentence-transformers library does with a long text: everything after the first window is cut off."""

    def make(texts: Sequence[Text]) -> list[Vector | Unscored]:
        tokens = embedder.tokens
        room = tokens.limit - len(tokens.before) - len(tokens.after)
        cut = [[*tokens.before, *ids[:room], *tokens.after] for ids in tokens.cut([text.content for text in texts])]
        vectors: list[Vector | Unscored] = [Unscored(Reason.EMPTY_TEXT)] * len(cut)
        for batch in batches([len(ids) for ids in cut], embedder.batch_tokens):
            for at, vector in zip(batch, embedder.network.encode([cut[k] for k in batch]), strict=True):
                vectors[at] = vector
        return vectors

    return KeptVectors(f"{embedder.identity}, first window only", embedder.dimension, make, file)
