"""Texts to unit vectors with a model that runs here: windows, batches by length, one inference at a time."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from metrics.blank import is_blank
from metrics.metric import Text, Vector
from metrics.model_files import ModelError, read_json
from metrics.outcome import Reason, Unscored
from metrics.windows_of_tokens import pooled, windows

log = logging.getLogger(__name__)

RULE = "windows/1"
"""Version of how a long text becomes one vector; part of every definition."""
BATCH_TOKENS = 2048
"""Tokens in one pass of the network: enough to fill the cores, and about 40 MB of activations."""


class Encodes(Protocol):
    """The network: token ids (with special tokens) to unit vectors, shape (texts, dimension), in input order."""

    def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """How texts become token ids for one model. `prefixes` maps a role to what goes in front of its texts."""

    tokenizer: Tokenizer
    limit: int
    """Most tokens in one window, special tokens included; read from the model."""
    prefixes: Mapping[str, str]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def content(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids without prefix and special tokens."""
        # A lone surrogate cannot be encoded; it stands for a character that was lost already.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return [e.ids for e in self.tokenizer.encode_batch_fast(clean, add_special_tokens=False)]

    def prefix(self, role: str) -> list[int]:
        return self.content([self.prefixes.get(role, "")])[0]


def read_tokens(folder: Path) -> Tokens:
    """Tokeniser, window and prefixes of a prepared model folder.

    Raises:
        ModelError: a file is missing or damaged.
    """
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the tokenizers package raises bare Exception
        raise ModelError(
            f"{folder / 'tokenizer.json'} cannot be read ({error}); run: groundwatch models verify"
        ) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Text is data: "</s>" inside an answer is four characters, not the end of it.
    tokenizer.encode_special_tokens = True
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    framed = tokenizer.encode("a").ids
    at = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
    pipeline, config = folder / "config_sentence_transformers.json", read_json(folder / "config.json")
    prompts = (read_json(pipeline).get("prompts") or {}) if pipeline.is_file() else {}
    limit = min(
        int(read_json(folder / "sentence_bert_config.json")["max_seq_length"]), int(config["max_position_embeddings"])
    )
    return Tokens(
        tokenizer,
        limit,
        {role: prompts.get(role) or "" for role in ("query", "passage")},
        tuple(framed[:at]),
        tuple(framed[at + len(bare) :]),
    )


@dataclass(slots=True)
class Counts:
    """Since the start: texts embedded, texts split because they were longer than the window, windows, recomputed."""

    texts: int = 0
    split: int = 0
    windows: int = 0
    recomputed: int = 0
    non_finite: int = 0


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """An `Embedder` over a network in this process. Calls from several threads wait for one another."""

    model: str
    revision: str
    dimension: int
    tokens: Tokens
    network: Encodes
    exact: Callable[[], Encodes]
    """The network in float32, loaded when a vector was not finite at a lower precision."""
    overlap: int = 32
    counts: Counts = field(default_factory=Counts)
    process: int = field(default_factory=os.getpid)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @property
    def identity(self) -> str:
        t = self.tokens
        prefixes = ",".join(f"{role}={text!r}" for role, text in sorted(t.prefixes.items()))
        return f"{self.model}@{self.revision} d{self.dimension} w{t.limit}-{self.overlap} {prefixes} {RULE}"

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        """Raises:
        RuntimeError: called in a process forked from the one that loaded the model: its threads are gone there.
        """
        if os.getpid() != self.process:
            raise RuntimeError("the model was loaded before a fork: load it in the process that uses it")
        results: list[Vector | Unscored] = [Unscored(Reason.EMPTY_TEXT)] * len(texts)
        with self._one_at_a_time:
            wanted = [i for i, text in enumerate(texts) if not is_blank(text.content)]
            contents = self.tokens.content([texts[i].content for i in wanted])
            prefixes = {role: self.tokens.prefix(role) for role in {texts[i].role for i in wanted}}
            pieces: list[list[int]] = []
            spans: list[tuple[int, list[int]]] = []
            for i, content in zip(wanted, contents, strict=True):
                if content:
                    cut = self._windows(prefixes[texts[i].role], content)
                    pieces += cut
                    spans.append((i, [len(ids) for ids in cut]))
            vectors = self._encode(pieces)
            start = 0
            for i, lengths in spans:
                results[i] = self._one(vectors[start : start + len(lengths)], lengths)
                start += len(lengths)
            self.counts.texts += len(spans)
            self.counts.windows += len(pieces)
            self.counts.split += sum(len(lengths) > 1 for _, lengths in spans)
        return results

    def _windows(self, prefix: list[int], content: list[int]) -> list[list[int]]:
        before, after = [*self.tokens.before, *prefix], [*self.tokens.after]
        size = self.tokens.limit - len(before) - len(after)
        spans = windows(len(content), size, min(self.overlap, size // 2))
        return [before + content[start:end] + after for start, end in spans]

    def _encode(self, pieces: list[list[int]]) -> npt.NDArray[np.float32]:
        vectors = np.empty((len(pieces), self.dimension), np.float32)
        for batch in batches([len(ids) for ids in pieces], BATCH_TOKENS):
            vectors[batch] = self.network.encode([pieces[i] for i in batch])
        for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
            self.counts.recomputed += 1
            vectors[i] = self.exact().encode([pieces[i]])[0]
        return vectors

    def _one(self, vectors: npt.NDArray[np.float32], lengths: list[int]) -> Vector | Unscored:
        vector = pooled(vectors, lengths)
        if not np.isfinite(vector).all():
            self.counts.non_finite += 1
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
