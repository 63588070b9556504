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

from metrics.encoder import Dense, Layer, Network, Norm, Weights, padded_rows
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
    """`base` holds the embedder's weights, of which the frozen part is used; `layers` are the trained ones above it.
    `attention`: what attention multiplies in, float32 or bfloat16."""

    network: Network
    base: Weights
    layers: tuple[Layer, ...]
    heads: Heads
    attention: torch.dtype


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
    network: Network,
    base: Weights,
    parameters: Mapping[str, Tensor],
    dense: MakeDense,
    attention: torch.dtype,
    precise: MakeDense = exact,
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
    return Verifier(network, base, layers, heads, attention)


def read(verifier: Verifier, batch: Batch) -> Reading:
    """Judge every statement of a batch against the premise of its row."""
    network, base = verifier.network, verifier.base
    seen = batch.mask if verifier.attention == torch.float32 else batch.mask.to(verifier.attention)

    def through(hidden: Tensor, layer: Layer, kept: Tensor | None = None) -> Tensor:
        """One layer; with `kept`, what comes out of it of these places alone."""
        mixed = _attention(layer.qkv(hidden).to(verifier.attention), seen, network, batch)
        if kept is not None:
            hidden, mixed = hidden[kept], mixed[kept]
        hidden = _normed(hidden + layer.attention_out(mixed), layer.attention_norm, network)
        wide = functional.gelu(layer.widen(hidden))
        return _normed(hidden + layer.narrow(wide), layer.out_norm, network)

    with torch.no_grad():
        hidden = base.words[batch.ids].float() + base.positions[batch.positions]
        hidden = _normed(hidden, base.norm, network)
        for layer in base.layers[:FROZEN]:
            hidden = through(hidden, layer)
    for layer in verifier.layers[:-1]:
        hidden = through(hidden, layer)
    # Nothing asks for the premise after the last layer.
    count = len(batch.statement_tokens)
    kept = functional.pad(batch.statement_tokens, (0, padded_rows(count) - count))
    return _heads(through(hidden, verifier.layers[-1], kept)[:count], verifier.heads, batch)


def _attention(qkv: Tensor, seen: Tensor, network: Network, batch: Batch) -> Tensor:
    heads, hidden = network.heads, network.hidden
    grid = qkv.new_zeros(batch.rows * batch.longest, 3 * hidden).index_copy_(0, batch.cells, qkv[: batch.total])
    parts = grid.view(batch.rows, batch.longest, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
    gather = _fused if qkv.dtype == torch.float32 else _taught if qkv.requires_grad else _quick
    mixed = gather(parts[0], parts[1], parts[2], seen)
    flat = mixed.transpose(1, 2).reshape(batch.rows * batch.longest, hidden)[batch.cells]
    return functional.pad(flat, (0, 0, 0, len(qkv) - batch.total))


def _fused(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)


def _taught(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """Written out: going back through the fused kernel takes two to four times as long for rows this short."""
    unseen = torch.zeros((), dtype=query.dtype).masked_fill(seen == 0, torch.finfo(query.dtype).min)
    scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(-1, -2)) + unseen
    return torch.matmul(torch.softmax(scores, -1), value)


def _quick(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Tensor:
    """The same step by step, in place: some two thirds of the time of the fused kernel for rows this short."""
    rows, heads, longest, width = query.shape
    q, k, v = (part.reshape(rows * heads, longest, width) for part in (query * width**-0.5, key, value))
    unseen = torch.zeros((), dtype=query.dtype).masked_fill(seen == 0, torch.finfo(query.dtype).min)
    scores = torch.bmm(q, k.transpose(1, 2)).view(rows, heads, longest, longest).add_(unseen)
    shares = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    mixed = torch.bmm(shares.view(rows * heads, longest, longest), v).view(rows, heads, longest, width)
    return mixed / shares.sum(-1, keepdim=True)


def _normed(x: Tensor, norm: Norm, network: Network) -> Tensor:
    return functional.layer_norm(x.float(), (network.hidden,), norm.weight, norm.bias, network.epsilon)


def _heads(tokens: Tensor, heads: Heads, batch: Batch) -> Reading:
    """`tokens`: what the last layer says of the batch's `statement_tokens`."""
    count = len(batch.first)
    scores = tokens @ heads.pool.T
    # A softmax within each statement; the bound keeps the exponentials finite.
    shares = torch.exp(scores.clamp(-30.0, 30.0))
    total = shares.new_zeros(count, POOLS).index_add(0, batch.owner, shares)
    weighted = (shares[:, :, None] * tokens[:, None, :]).reshape(len(tokens), -1)
    gathered = weighted.new_zeros(count, weighted.shape[1]).index_add(0, batch.owner, weighted)
    pooled = gathered / total.repeat_interleave(tokens.shape[1], dim=1)
    mixed = functional.gelu(heads.mix(torch.cat([tokens[batch.first], pooled], dim=1)))
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
