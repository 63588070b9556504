"""What a model folder holds, and the one error that says a model cannot be used."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

MANIFEST = "groundwatch.json"
SENTENCEPIECE, EXCEPTIONS = "sentencepiece.model", "normaliser.json"
LAYOUT = 2
"""Version of the folder's layout and of the code that writes it: another one is prepared anew."""


class ModelError(Exception):
    """A model cannot be prepared, read or trusted; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where a folder came from and what must lie in it.

    `revision` is the SHA-256 (64 hex digits) of the file that the weights were read from; `files` maps a relative path
    to (SHA-256, bytes).
    """

    name: str
    revision: str
    source: str
    licence: str
    files: Mapping[str, tuple[str, int]]


def sha256_of(path: Path) -> str:
    """64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def read_json(path: Path) -> Any:
    """Raises:
    ModelError: absent or not JSON.
    """
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ModelError(f"{path} cannot be read ({error}); run: groundwatch models prepare") from None


def write_manifest(folder: Path, *, name: str, revision: str, source: str, licence: str) -> Manifest:
    """Write the manifest over all files that lie in `folder`."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    files = {str(p.relative_to(folder)): (sha256_of(p), p.stat().st_size) for p in paths}
    write_json(
        folder / MANIFEST,
        {
            "layout": LAYOUT,
            "name": name,
            "revision": revision,
            "source": source,
            "licence": licence,
            "files": {path: {"sha256": digest, "bytes": size} for path, (digest, size) in files.items()},
        },
    )
    return Manifest(name, revision, source, licence, files)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared folder; that the files are there in the right size is checked, their content is not.

    Raises:
        ModelError: no manifest, another layout, or a file missing or of another size.
    """
    raw = read_json(folder / MANIFEST)
    try:
        if raw["layout"] != LAYOUT:
            raise ModelError(f"{folder} has layout {raw['layout']}, not {LAYOUT}; run: groundwatch models prepare")
        files = {str(p): (str(f["sha256"]), int(f["bytes"])) for p, f in raw["files"].items()}
        manifest = Manifest(raw["name"], raw["revision"], raw["source"], raw["licence"], files)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{folder / MANIFEST} is damaged ({error!r}); delete {folder} and prepare it anew") from None
    for path, (_, size) in manifest.files.items():
        found = folder / path
        if not found.is_file() or found.stat().st_size != size:
            raise ModelError(f"{found} is missing or not {size} bytes long; delete {folder} and prepare it anew")
    return manifest


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
    """Relative paths whose SHA-256 is not the manifest's."""
    return [path for path, (digest, _) in manifest.files.items() if sha256_of(folder / path) != digest]
