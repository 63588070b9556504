"""The one protocol behind which every metric stands, and what a metric is given.

A metric is one small module: it says which texts must be embedded, and turns an event and their vectors into a value or
a reason. The worker and `score-file` know only this protocol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from metrics.event import Event
from metrics.outcome import Outcome, Unscored

Vector = npt.NDArray[np.float32]
"""One embedding: shape (dimension,), float32, unit length."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text to embed, and in which role: some models (E5) prefix queries and passages differently."""

    role: Literal["query", "passage"]
    content: str


Vectors = Mapping[Text, Vector | Unscored]


class Embedder(Protocol):
    """Texts to unit vectors. Order is kept; a text that cannot be embedded is `Unscored`, never a zero vector."""

    @property
    def identity(self) -> str:
        """What vectors depend on: model, revision, dimension, window, prefixes. Part of every definition."""
        ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]: ...


class Metric(Protocol):
    """One score per event."""

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The metric's own range, both ends included."""
        ...

    @property
    def formula(self) -> str:
        """Name, aggregation and version of the formula, e.g. `topic_similarity/best/1`: part of the definition."""
        ...

    def texts(self, event: Event) -> tuple[Text, ...]:
        """What must be embedded before `score`; empty where the event gives the metric nothing to do."""
        ...

    def score(self, event: Event, vectors: Vectors) -> Outcome: ...


def definition(*parts: str) -> str:
    """8 hex digits of everything that a score's meaning depends on; parts are length-prefixed."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(b"%d:" % len(raw) + raw)
    return digest.hexdigest()[:8]
