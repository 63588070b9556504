"""Small random projections of embeddings, so that the monitor can see embedding drift without text and without torch.

Johnson-Lindenstrauss: a fixed Gaussian matrix keeps distances up to a small distortion (Contrib. Math. 26, 1984).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from metrics.event import Event
from metrics.metric import Text, Vector, Vectors

DIMENSION = 32
SEED = 20261129


@lru_cache(maxsize=4)
def _projection(dimension: int) -> npt.NDArray[np.float32]:
    matrix = np.random.default_rng(SEED).standard_normal((dimension, DIMENSION)) / np.sqrt(DIMENSION)
    return np.asarray(matrix, dtype=np.float32)


def encode_sketch(vector: Vector) -> str:
    """Base64 of 32 little-endian float16: the fixed projection of the unit-length `vector`, shape (dimension,)."""
    return base64.b64encode((vector @ _projection(len(vector))).astype("<f2").tobytes()).decode()


def decode_sketch(encoded: str) -> npt.NDArray[np.float32]:
    """The projection, shape (32,), float32.

    Raises:
        ValueError: not the base64 of 32 float16.
    """
    sketch = np.frombuffer(base64.b64decode(encoded, validate=True), dtype="<f2").astype(np.float32)
    if sketch.shape != (DIMENSION,):
        raise ValueError(f"a sketch has {DIMENSION} values, not {sketch.size}")
    return sketch


def sketch_of(event: Event, used: Iterable[Text], vectors: Vectors) -> dict[str, str]:
    """Sketches of the question and of the mean chunk vector, from the vectors that were computed anyway."""
    chunks = {chunk.text for chunk in event.contexts}
    found: dict[str, list[Vector]] = {"question": [], "context": []}
    for text in used:
        vector = vectors.get(text)
        if isinstance(vector, np.ndarray):
            if text.role == "query" and text.content == event.question:
                found["question"].append(vector)
            elif text.role == "passage" and text.content in chunks:
                found["context"].append(vector)
    sketches = {}
    for name, members in found.items():
        if members:
            mean = np.mean(members, axis=0, dtype=np.float32)
            norm = float(np.linalg.norm(mean))
            if norm > 1e-6:
                sketches[name] = encode_sketch(np.asarray(mean / norm, dtype=np.float32))
    return sketches
