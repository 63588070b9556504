"""A BERT encoder for inference on CPU: token ids to mean-pooled unit vectors.

Texts of a batch are laid end to end without padding: the dense layers see one matrix of all tokens, attention goes
group by group of equally long texts. So a vector does not depend on its neighbours' lengths, and no work is spent on
padding.

The word table stays as it lies in the file (half precision, memory-mapped: only rows in use become resident).
transformers is not imported: it would cost memory and start-up time for code that is not run.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import functional

from metrics.model_files import ModelError, read_json

Precision = Literal["fp32", "bf16", "int8"]
"""`bf16`: all dense layers but those that make query, key and value multiply in bfloat16; attention, sums and norms
stay in float32 (bfloat16 there doubles the error of a cosine, and saves no time). `int8`: dynamic, per channel."""
ROW_STEPS = ((256, 32), (1024, 64), (4096, 256), (16384, 1024))
"""(up to so many rows, multiples of this). The smallest matrix has 32 rows: below 16 the libraries take other paths,
whose last digits differ, so that a text would have one vector alone and another in a batch."""
Dense = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Network:
    """Sizes from config.json; `positions` is the longest text in tokens, special tokens included."""

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer; `qkv` is query, key and value in one matrix."""

    qkv: Dense
    attention_out: Dense
    attention_norm: Norm
    widen: Dense
    narrow: Dense
    out_norm: Norm


@dataclass(frozen=True, slots=True)
class Weights:
    words: Tensor
    positions: Tensor
    """Position rows with the first token-type row added: single texts have one type."""
    norm: Norm
    layers: tuple[Layer, ...]


def padded_rows(rows: int) -> int:
    """The number of rows that a batch of `rows` tokens is filled up to: one of a few dozen sizes.

    The library keeps compiled kernels and buffers for every size it has met, hundreds of megabytes in the end, and
    compiling takes longer than the few rows more.

    >>> [padded_rows(n) for n in (1, 33, 300, 1025)]
    [32, 64, 320, 1280]
    """
    step = next((step for most, step in ROW_STEPS if rows <= most), ROW_STEPS[-1][1])
    return -(-rows // step) * step


class Encoder:
    """Not safe for several threads at once; the embedder holds the lock."""

    def __init__(self, network: Network, weights: Weights, precision: Precision) -> None:
        self.network = network
        self.precision = precision
        self.weights = weights

    def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Unit vectors, shape (texts, hidden), in input order; each text is its token ids with special tokens.

        Raises:
            ValueError: a text without tokens or longer than the network's positions.
        """
        lengths = [len(ids) for ids in texts]
        if not texts:
            return np.empty((0, self.network.hidden), np.float32)
        if min(lengths) == 0 or max(lengths) > self.network.positions:
            raise ValueError(
                f"texts must have 1 to {self.network.positions} tokens, not {min(lengths)} to {max(lengths)}"
            )
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        groups = [(length, sum(1 for _ in same)) for length, same in itertools.groupby(lengths[i] for i in order)]
        with torch.inference_mode():
            flat = torch.tensor([token for i in order for token in texts[i]], dtype=torch.long)
            flat = functional.pad(flat, (0, padded_rows(len(flat)) - len(flat)))
            pooled = self._forward(flat, groups)
            units = functional.normalize(pooled, dim=1, eps=1e-30)
            result = np.empty((len(texts), self.network.hidden), np.float32)
            result[order] = units.numpy()
        return result

    def _forward(self, ids: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        weights, network = self.weights, self.network
        where = torch.cat([torch.arange(length).repeat(count) for length, count in groups])
        where = functional.pad(where, (0, len(ids) - len(where)))
        hidden = weights.words[ids].float() + weights.positions[where]
        hidden = self._normed(hidden, weights.norm)
        for layer in weights.layers:
            qkv = layer.qkv(hidden)
            attended = layer.attention_out(self._attention(qkv, groups))
            hidden = self._normed(hidden + attended, layer.attention_norm)
            wide = functional.gelu(layer.widen(hidden))
            hidden = self._normed(hidden + layer.narrow(wide), layer.out_norm)
        parts, start = [], 0
        for length, count in groups:
            end = start + length * count
            parts.append(hidden[start:end].view(count, length, network.hidden).mean(1))
            start = end
        return torch.cat(parts)

    def _attention(self, qkv: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        heads, hidden = self.network.heads, self.network.hidden
        out = torch.zeros(len(qkv), hidden, dtype=qkv.dtype)
        start = 0
        for length, count in groups:
            end = start + length * count
            parts = qkv[start:end].view(count, length, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            out[start:end] = mixed.transpose(1, 2).reshape(end - start, hidden)
            start = end
        return out

    def _normed(self, x: Tensor, norm: Norm) -> Tensor:
        return functional.layer_norm(x.float(), (self.network.hidden,), norm.weight, norm.bias, self.network.epsilon)


def load_encoder(folder: Path, precision: Precision) -> Encoder:
    """Read a transformers BertModel folder (config.json, model.safetensors).

    Raises:
        ModelError: another architecture, or a tensor missing or of another shape.
    """
    config = read_json(folder / "config.json")
    try:
        network = Network(
            config["hidden_size"],
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["max_position_embeddings"],
            config["layer_norm_eps"],
        )
        if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
            raise ModelError(f"{folder} is a {config['model_type']} model; only BERT is read here")
        path = folder / "model.safetensors"
        # Two mappings of one file: that of the layers ends with their tensors, once these are in another precision.
        with safe_open(path, "pt") as table, safe_open(path, "pt") as file:
            weights = _weights(table, file, network, precision)
    except (KeyError, OSError, SafetensorError) as error:
        raise ModelError(f"{folder} is not a complete model ({error}); run: groundwatch models verify") from None
    return Encoder(network, weights, precision)


def _weights(table: Any, file: Any, network: Network, precision: Precision) -> Weights:
    names = set(file.keys())

    def read(name: str, source: Any = file) -> Tensor:
        if name not in names:
            raise ModelError(f"tensor {name} is missing; run: groundwatch models verify")
        tensor: Tensor = source.get_tensor(name)
        return tensor

    def dense(make: Callable[[Tensor, Tensor], Dense], *prefixes: str) -> Dense:
        weights, biases = [read(f"{p}.weight") for p in prefixes], [read(f"{p}.bias") for p in prefixes]
        # A single tensor stays a view of the mapped file.
        return make(*((w[0] if len(w) == 1 else torch.cat(w)).float() for w in (weights, biases)))

    def norm(prefix: str) -> Norm:
        # A copy: a view would keep the whole mapping.
        return Norm(*(read(f"{prefix}.{kind}").to(torch.float32, copy=True) for kind in ("weight", "bias")))

    def layer(prefix: str) -> Layer:
        own = f"{prefix}.attention.self"
        return Layer(
            dense(exact, f"{own}.query", f"{own}.key", f"{own}.value"),
            dense(cheap, f"{prefix}.attention.output.dense"),
            norm(f"{prefix}.attention.output.LayerNorm"),
            dense(cheap, f"{prefix}.intermediate.dense"),
            dense(cheap, f"{prefix}.output.dense"),
            norm(f"{prefix}.output.LayerNorm"),
        )

    cheap = dense_for(precision)
    exact = _int8 if precision == "int8" else _float32
    positions = read("embeddings.position_embeddings.weight").float()
    types = read("embeddings.token_type_embeddings.weight").float()
    return Weights(
        read("embeddings.word_embeddings.weight", table),
        positions + types[0],
        norm("embeddings.LayerNorm"),
        tuple(layer(f"encoder.layer.{i}") for i in range(network.layers)),
    )


def dense_for(precision: Precision) -> Callable[[Tensor, Tensor], Dense]:
    """Makes a dense layer of weight (out, in) and bias in a precision."""
    return {"fp32": _float32, "bf16": _bfloat16, "int8": _int8}[precision]


def _float32(weight: Tensor, bias: Tensor) -> Dense:
    return lambda x: functional.linear(x.float(), weight, bias)


def _bfloat16(weight: Tensor, bias: Tensor) -> Dense:
    half_weight, half_bias = weight.bfloat16(), bias.bfloat16()
    return lambda x: functional.linear(x.bfloat16(), half_weight, half_bias)


def _int8(weight: Tensor, bias: Tensor) -> Dense:
    scale = weight.abs().amax(1).clamp(min=1e-12) / 127.0
    zero = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # torch means to drop these; without them int8 is not to be had, and is left out.
        warnings.simplefilter("ignore", UserWarning)
        quantised = torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(quantised, bias)

    def dense(x: Tensor) -> Tensor:
        result: Tensor = torch.ops.quantized.linear_dynamic(x.float(), packed)
        return result

    return dense
