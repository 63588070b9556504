"""Texts to unit vectors with a model that runs here: windows, batches by length, one inference at a time."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metrics.blank import is_blank
from metrics.metric import Text, Vector
from metrics.outcome import Reason, Unscored
from metrics.tokens import Tokens
from metrics.windows_of_tokens import MOST_WINDOWS, pooled, spread, windows

log = logging.getLogger(__name__)

RULE = "windows/2"
"""Version of how a long text becomes one vector; part of every definition."""
BATCH_TOKENS = 2048
"""Tokens in one pass of the network: enough to fill the cores, and some 40 MB of activations."""
KINDS = ("whole", "split", "spread", "blank", "recomputed", "non_finite")
"""What is counted: texts that fit the window, were split over several, those of them that have more than are read
(`MOST_WINDOWS`), had nothing to read; vectors that were not
finite and were computed again alone in float32; texts given up because they still were not."""
Count = Callable[[str, int], None]
"""Called with one of `KINDS` and how many."""


class Network(Protocol):
    """Token ids (with special tokens) to unit vectors, shape (texts, dimension), float32, in input order."""

    def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]: ...


def uncounted(kind: str, number: int) -> None:
    """A `Count` that keeps nothing."""


def _unheard() -> None:
    pass


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """An `Embedder` over a network in this process. Calls from several threads wait for one another.

    A text longer than the model's window is cut into windows that overlap; its vector is the mean of the windows' unit
    vectors weighted by their tokens, brought back to unit length. Of more than `MOST_WINDOWS`, so many are read, from
    the beginning to the end.
    """

    model: str
    revision: str
    dimension: int
    tokens: Tokens
    network: Network
    exact: Callable[[], Network]
    """The network in float32; asked for when a vector is not finite at a lower precision."""
    overlap: int = 32
    """Tokens that neighbouring windows share."""
    batch_tokens: int = BATCH_TOKENS
    count: Count = uncounted
    turned: Callable[[], None] = _unheard
    """Called after every batch: a batch of long texts takes a while, in which it shows that something moves."""
    process: int = field(default_factory=os.getpid)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @property
    def identity(self) -> str:
        prefixes = " ".join(f"{role}={prefix!r}" for role, prefix in sorted(self.tokens.prefixes.items()))
        window = f"{self.tokens.limit}-{self.overlap}"
        return f"{self.model}@{self.revision} dim={self.dimension} window={window} {prefixes} {RULE}"

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        """One unit vector, or the reason why there is none, for each text, in order.

        Raises:
            RuntimeError: in a process forked from the one that loaded the model: the threads of the libraries are gone
                there, and the first call would hang.
        """
        if os.getpid() != self.process:
            raise RuntimeError("the model was loaded before a fork: load it in the process that uses it")
        results: list[Vector | Unscored] = [Unscored(Reason.EMPTY_TEXT)] * len(texts)
        with self._one_at_a_time:
            pieces: list[list[int]] = []
            spans: list[tuple[int, list[int]]] = []
            for i, cut in self._cut(texts):
                pieces += cut
                spans.append((i, [len(ids) for ids in cut]))
            vectors = self._encode(pieces)
        start = 0
        for i, lengths in spans:
            results[i] = self._one(vectors[start : start + len(lengths)], lengths)
            start += len(lengths)
        split = sum(len(lengths) > 1 for _, lengths in spans)
        self.count("split", split)
        self.count("whole", len(spans) - split)
        self.count("blank", len(texts) - len(spans))
        return results

    def _cut(self, texts: Sequence[Text]) -> list[tuple[int, list[list[int]]]]:
        """(index, windows of token ids) of every text that holds something to read."""
        wanted = [i for i, text in enumerate(texts) if not is_blank(text.content)]
        contents = self.tokens.cut([texts[i].content for i in wanted])
        prefixes = {
            role: self.tokens.cut([prefix])[0] if prefix else [] for role, prefix in self.tokens.prefixes.items()
        }
        found = []
        for i, content in zip(wanted, contents, strict=True):
            if content:
                before, after = [*self.tokens.before, *prefixes[texts[i].role]], [*self.tokens.after]
                size = self.tokens.limit - len(before) - len(after)
                spans = windows(len(content), size, min(self.overlap, size // 2))
                self.count("spread", int(len(spans) > MOST_WINDOWS))
                found.append((i, [before + content[start:end] + after for start, end in spread(spans)]))
        return found

    def _encode(self, pieces: list[list[int]]) -> npt.NDArray[np.float32]:
        vectors = np.empty((len(pieces), self.dimension), np.float32)
        for batch in batches([len(ids) for ids in pieces], self.batch_tokens):
            vectors[batch] = self.network.encode([pieces[i] for i in batch])
            self.turned()
        for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
            self.count("recomputed", 1)
            vectors[i] = self.exact().encode([pieces[i]])[0]
        return vectors

    def _one(self, vectors: npt.NDArray[np.float32], lengths: list[int]) -> Vector | Unscored:
        vector = pooled(vectors, lengths)
        if not np.isfinite(vector).all():
            self.count("non_finite", 1)
            return Unscored(Reason.NON_FINITE)
        return vector


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of all texts, shortest first, in batches of at most `budget` tokens (a longer text goes alone).

    >>> batches([5, 1, 9, 2], 8)
    [[1, 3, 0], [2]]
    """
    result: list[list[int]] = []
    used = budget + 1
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if used + lengths[i] > budget:
            result.append([])
            used = 0
        result[-1].append(i)
        used += lengths[i]
    return result
