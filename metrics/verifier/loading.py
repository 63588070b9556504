"""A verifier over the embedder's own base: word table, positions and lowest layers are in memory once."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from metrics.encoder import Dense, Encoder, Precision
from metrics.encoder import dense_for as encoder_dense
from metrics.verifier.network import Verifier, assemble


def verifier_over(encoder: Encoder, parameters: Mapping[str, Tensor], precision: Precision) -> Verifier:
    """The trained layers in one precision above the frozen ones of `encoder`, which keep theirs."""
    make = encoder_dense(precision)

    def frozen(weight: Tensor, bias: Tensor) -> Dense:
        return make(weight.detach(), bias.detach())

    attention = torch.float32 if precision == "fp32" else torch.bfloat16
    return assemble(encoder.network, encoder.weights, parameters, frozen, attention)
