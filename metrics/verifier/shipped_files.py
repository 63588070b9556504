"""Where the shipped verifier lies, and whether its two files belong together; asks for no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from metrics.model_files import ModelError, sha256_of

NAME = "verifier"
"""What `groundwatch models` calls it."""
LICENCE = "Apache-2.0"
WEIGHTS, JOINED = "verifier.safetensors", "joined.json"
FOLDER = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True)
class Files:
    """`sha256`: of the weights. `base`: first 12 digits of the revision of the model that they stand on."""

    weights: Path
    joined: Path
    sha256: str
    base: str


def checked_files(folder: Path = FOLDER) -> Files:
    """Both files, after their checksum.

    Raises:
        ModelError: not in this installation, damaged, or not of one another.
    """
    weights, joined = folder / WEIGHTS, folder / JOINED
    absent = [path.name for path in (weights, joined) if not path.is_file()]
    if absent:
        raise ModelError(
            f"the local verifier is not in this installation ({', '.join(absent)} missing in {folder}); "
            "set judge.kind = 'lexical' or 'llm', or name an NLI model in judge.local_model, or train it "
            "(docs/verifier-training.md)"
        )
    found = sha256_of(weights)
    try:
        expected = str(json.loads(joined.read_bytes())["network_sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{joined} cannot be read ({error!r}); reinstall groundwatch") from None
    if found != expected:
        raise ModelError(
            f"{weights} has SHA-256 {found[:12]}, but {JOINED} was fitted for {expected[:12]}; reinstall groundwatch"
        )
    return Files(weights, joined, found, _base_of(weights))


def _base_of(weights: Path) -> str:
    """From the header of a safetensors file: its length in 8 bytes, then JSON."""
    try:
        with weights.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return str(header["__metadata__"]["base"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{weights} cannot be read ({error!r}); reinstall groundwatch") from None
