"""Checkpoints of training: whole, or not there. A killed process loses at most what it did since the last one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LATEST = "latest.pt"


class CheckpointError(Exception):
    """A checkpoint that cannot be gone on from; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`stage`, `step`: what comes next. `plan`: names the data and settings that the run depends on.

    `optimiser` is empty between two stages.
    """

    stage: int
    step: int
    plan: str
    parameters: Mapping[str, Tensor]
    optimiser: Mapping[str, Any]
    seconds: float
    """Time of training so far."""


def save(folder: Path, checkpoint: Checkpoint, name: str = LATEST) -> Path:
    """Write it beside the old one and put it in its place."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    working = path.with_name(f".{name}.{os.getpid()}")
    with working.open("wb") as file:
        torch.save({f: getattr(checkpoint, f) for f in Checkpoint.__slots__}, file)
        file.flush()
        os.fsync(file.fileno())
    working.replace(path)
    return path


def load(path: Path) -> Checkpoint:
    """Raises:
    CheckpointError: it is damaged or of another kind.
    """
    try:
        found = torch.load(path, weights_only=True, map_location="cpu")
        return Checkpoint(**found)
    except Exception as error:  # torch raises what it likes
        raise CheckpointError(f"{path} cannot be read ({error}); delete it to begin the stage anew") from None


def latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint of a folder; None where training has not begun."""
    path = folder / LATEST
    return load(path) if path.is_file() else None
