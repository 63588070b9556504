"""The verifier's network: the layers of the embedder's encoder over packed rows, and two heads.

The word table, the positions and the lowest `FROZEN` layers are the embedder's own and are never trained, so that both
models share them in memory. The class head reads each statement's first token and what four learned attentions gather
from its tokens; the token head says of every token whether it is unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from metrics.encoder import Dense, Layer, Network, Norm, Weights
from metrics.verifier.packing import Batch

FROZEN = 3
POOLS = 4
CLASSES = ("supported", "not_found", "contradicted")

MakeDense = Callable[[Tensor, Tensor], Dense]


@dataclass(frozen=True, slots=True)
class Heads:
    """`pool`: (POOLS, hidden) attention queries; `mix`, `classes`, `tokens`: dense layers."""

    pool: Tensor
    mix: Dense
    classes: Dense
    tokens: Dense


@dataclass(frozen=True, slots=True)
class Verifier:
    """`base` holds the embedder's weights, of which the frozen part is used; `layers` are the trained ones above it."""

    network: Network
    base: Weights
    layers: tuple[Layer, ...]
    heads: Heads


@dataclass(frozen=True, slots=True)
class Reading:
    """`classes`: logits (statements, 3) in the order of `CLASSES`. `tokens`: logit that a token is unsupported, one for
    each entry of the batch's `statement_tokens`."""

    classes: Tensor
    tokens: Tensor


def exact(weight: Tensor, bias: Tensor) -> Dense:
    """Multiply in float32."""
    return lambda x: functional.linear(x.float(), weight, bias)


def rounded(weight: Tensor, bias: Tensor) -> Dense:
    """Multiply in bfloat16 with weights that may still change: they are cast at every call."""
    return lambda x: functional.linear(x.bfloat16(), weight.bfloat16(), bias.bfloat16())


def assemble(
    network: Network, base: Weights, parameters: Mapping[str, Tensor], dense: MakeDense, precise: MakeDense = exact
) -> Verifier:
    """A verifier over named parameters (`initial` makes them). The heads always multiply by `precise`."""

    def part(make: MakeDense, name: str) -> Dense:
        return make(parameters[f"{name}.weight"], parameters[f"{name}.bias"])

    def norm(name: str) -> Norm:
        return Norm(parameters[f"{name}.weight"], parameters[f"{name}.bias"])

    layers = tuple(
        Layer(
            part(dense, f"{own}.qkv"),
            part(dense, f"{own}.attention_out"),
            norm(f"{own}.attention_norm"),
            part(dense, f"{own}.widen"),
            part(dense, f"{own}.narrow"),
            norm(f"{own}.out_norm"),
        )
        for own in (f"layers.{i}" for i in range(FROZEN, network.layers))
    )
    heads = Heads(parameters["pool.weight"], part(precise, "mix"), part(precise, "classes"), part(precise, "tokens"))
    return Verifier(network, base, layers, heads)


def read(verifier: Verifier, batch: Batch) -> Reading:
    """Judge every statement of a batch against the premise of its row."""
    network, base = verifier.network, verifier.base
    with torch.no_grad():
        hidden = base.words[batch.ids].float() + base.positions[batch.positions]
        hidden = _normed(hidden, base.norm, network)
        for layer in base.layers[:FROZEN]:
            hidden = _layer(hidden, layer, network, batch)
    for layer in verifier.layers:
        hidden = _layer(hidden, layer, network, batch)
    return _heads(hidden, verifier.heads, batch)


def _layer(hidden: Tensor, layer: Layer, network: Network, batch: Batch) -> Tensor:
    attended = layer.attention_out(_attention(layer.qkv(hidden), network, batch))
    hidden = _normed(hidden + attended, layer.attention_norm, network)
    wide = functional.gelu(layer.widen(hidden))
    return _normed(hidden + layer.narrow(wide), layer.out_norm, network)


def _attention(qkv: Tensor, network: Network, batch: Batch) -> Tensor:
    heads, hidden = network.heads, network.hidden
    grid = qkv.new_zeros(batch.rows * batch.longest, 3 * hidden).index_copy(0, batch.cells, qkv[: batch.total])
    parts = grid.view(batch.rows, batch.longest, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
    query, key, value = parts[0], parts[1], parts[2]
    if qkv.requires_grad:
        # Written out: going back through the fused kernel takes two to four times as long for rows this short.
        unseen = torch.zeros((), dtype=qkv.dtype).masked_fill(~batch.mask, torch.finfo(qkv.dtype).min)
        scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(-1, -2)) + unseen
        mixed = torch.matmul(torch.softmax(scores, -1), value)
    else:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=batch.mask)
    flat = mixed.transpose(1, 2).reshape(batch.rows * batch.longest, hidden)[batch.cells]
    return functional.pad(flat, (0, 0, 0, len(qkv) - batch.total))


def _normed(x: Tensor, norm: Norm, network: Network) -> Tensor:
    return functional.layer_norm(x.float(), (network.hidden,), norm.weight, norm.bias, network.epsilon)


def _heads(hidden: Tensor, heads: Heads, batch: Batch) -> Reading:
    tokens = hidden[batch.statement_tokens]
    count = len(batch.first)
    scores = tokens @ heads.pool.T
    # A softmax within each statement; the bound keeps the exponentials finite.
    shares = torch.exp(scores.clamp(-30.0, 30.0))
    total = shares.new_zeros(count, POOLS).index_add(0, batch.owner, shares)
    weighted = (shares[:, :, None] * tokens[:, None, :]).reshape(len(tokens), -1)
    gathered = weighted.new_zeros(count, weighted.shape[1]).index_add(0, batch.owner, weighted)
    pooled = gathered / total.repeat_interleave(hidden.shape[1], dim=1)
    mixed = functional.gelu(heads.mix(torch.cat([hidden[batch.first], pooled], dim=1)))
    return Reading(heads.classes(mixed), heads.tokens(tokens)[:, 0])


def initial(tensors: Mapping[str, Tensor], network: Network, seed: int) -> dict[str, Tensor]:
    """Parameters to train: the base's upper layers as they stand in a transformers BertModel, and fresh heads.

    Raises:
        KeyError: the base lacks a tensor.
    """
    found: dict[str, Tensor] = {}
    for i in range(FROZEN, network.layers):
        theirs, own = f"encoder.layer.{i}", f"layers.{i}"
        for kind in ("weight", "bias"):
            qkv = [tensors[f"{theirs}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            found[f"{own}.qkv.{kind}"] = torch.cat([t.float() for t in qkv])
            for part, name in (
                ("attention.output.dense", "attention_out"),
                ("attention.output.LayerNorm", "attention_norm"),
                ("intermediate.dense", "widen"),
                ("output.dense", "narrow"),
                ("output.LayerNorm", "out_norm"),
            ):
                found[f"{own}.{name}.{kind}"] = tensors[f"{theirs}.{part}.{kind}"].float().clone()
    random = torch.Generator().manual_seed(seed)
    hidden = network.hidden

    def fresh(name: str, rows: int, columns: int) -> None:
        found[f"{name}.weight"] = torch.randn(rows, columns, generator=random) * columns**-0.5
        found[f"{name}.bias"] = torch.zeros(rows)

    found["pool.weight"] = torch.randn(POOLS, hidden, generator=random) * hidden**-0.5
    fresh("mix", hidden, (POOLS + 1) * hidden)
    fresh("classes", len(CLASSES), hidden)
    fresh("tokens", 1, hidden)
    return found
