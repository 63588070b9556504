"""The trained weights as a file: matrices in 8 bits with a scale a row, the rest in 16; small enough for git."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from metrics.model_files import ModelError
from metrics.verifier.network import FROZEN

LAYOUT = "1"
LARGEST = 25_000_000
"""Bytes that the file may have."""
_SCALE = ".scale"


@dataclass(frozen=True, slots=True)
class Trained:
    """`parameters` in float32. `base`: first 12 digits of the revision that the weights belong to. `digest`: first 12
    of the file's own SHA-256."""

    parameters: Mapping[str, Tensor]
    base: str
    digest: str


def mean(trained: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of networks that were trained on from one and the same: about as good as one trained on all that they
    saw together (model soups, Wortsman et al., ICML 2022, arXiv:2203.05482); of a network and the one that it was
    trained on from: it keeps more of what that one could (WiSE-FT, CVPR 2022, arXiv:2109.01903)."""
    return {name: torch.stack([t[name].float() for t in trained]).mean(0) for name in trained[0]}


def write(path: Path, parameters: Mapping[str, Tensor], base: str) -> str:
    """Write the file; returns its SHA-256.

    Raises:
        ModelError: it would be larger than `LARGEST`, or a value is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{name} holds values that are not finite: this checkpoint cannot be used")
        if tensor.dim() == 2 and tensor.shape[0] >= 16:
            scale = tensor.abs().amax(1).clamp(min=1e-12) / 127.0
            tensors[name] = torch.round(tensor / scale[:, None]).to(torch.int8)
            tensors[name + _SCALE] = scale.float()
        else:
            tensors[name] = tensor.half()
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    if size > LARGEST:
        raise ModelError(f"the weights take {size} bytes, more than {LARGEST}")
    path.parent.mkdir(parents=True, exist_ok=True)
    working = path.with_name(f".{path.name}")
    save_file(tensors, working, metadata={"layout": LAYOUT, "base": base, "frozen": str(FROZEN)})
    _order_header(working)
    working.chmod(0o644)
    working.replace(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _order_header(path: Path) -> None:
    """Put the header's keys in order: the library writes them as they come, so that the same weights would have
    another checksum every time. Keys are moved, never changed, so the header keeps its length."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.dumps(json.loads(raw[8 : 8 + length]), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(raw[:8] + header.encode().ljust(length) + raw[8 + length :])


def read(path: Path, base: str = "") -> Trained:
    """The weights of a file.

    Raises:
        ModelError: absent, damaged, of another layout, or made for another base than `base` (where that is given).
    """
    try:
        with safe_open(path, "pt") as file:
            meta = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if meta.get("layout") != LAYOUT or meta.get("frozen") != str(FROZEN):
            raise ModelError(f"{path} has another layout than this version reads; reinstall groundwatch")
        if base and meta["base"] != base:
            raise ModelError(f"{path} belongs to revision {meta['base']} of the base model, not {base}")
        parameters = {
            name: tensor.float() * found[name + _SCALE][:, None] if tensor.dtype == torch.int8 else tensor.float()
            for name, tensor in found.items()
            if not name.endswith(_SCALE)
        }
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be read ({error}); reinstall groundwatch") from None
    return Trained(parameters, meta["base"], digest)
