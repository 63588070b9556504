"""Any sentence-transformers model, by name or by path, behind the same windows and batches as the packaged ones.

The library (and with it transformers) is imported only here. At run time no hub is asked: a model by name must have
been prepared (`groundwatch models prepare`), which is the one moment when something is downloaded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from metrics.embedding import Count, LocalEmbedder
from metrics.model_files import ModelError, sha256_of
from metrics.tokens import huggingface_tokens

INSTALL = "pip install 'groundwatch[sentence-transformers]'"
_CONTENT = (".safetensors", ".bin", ".json", ".txt", ".model")


@dataclass(frozen=True, slots=True)
class PaddedNetwork:
    """The library's own modules over padded batches."""

    model: Any
    pad: int
    """Id of the padding token; what is there is masked."""

    def encode(self, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        longest = max(map(len, texts))
        ids = torch.full((len(texts), longest), self.pad, dtype=torch.long)
        mask = torch.zeros((len(texts), longest), dtype=torch.long)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.tensor(text)
            mask[row, : len(text)] = 1
        with torch.inference_mode():
            found = self.model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"].float()
            units = torch.nn.functional.normalize(found, dim=1, eps=1e-30)
        return np.asarray(units.numpy(), np.float32)


def foreign_embedder(
    folder: Path, name: str, *, revision: str, overlap: int, batch_tokens: int, count: Count
) -> LocalEmbedder:
    """The model in `folder`, in float32.

    Raises:
        ModelError: the library is not installed, or the folder is no model that it can read, or one whose prompt is
            left out of the mean (instructor models), or one without a fast tokeniser.
    """
    # Before the import: the libraries read these once.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ModelError(f"{name} needs the sentence-transformers package ({error}): {INSTALL}") from None
    try:
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=False)
        model = model.eval().float()
        backend = model.tokenizer.backend_tokenizer
    except Exception as error:  # the library raises what it likes
        raise ModelError(f"{folder} is no model that sentence-transformers reads: {error}") from None
    prompts = {key: text for key, text in (model.prompts or {}).items() if text}
    if prompts and any(getattr(module, "include_prompt", True) is False for module in model):
        raise ModelError(f"{name} leaves its prompt out of the mean, which is not supported; choose another model")
    default = prompts.get(model.default_prompt_name or "", "")
    prefixes = {
        "query": prompts.get("query", default),
        "passage": prompts.get("passage", prompts.get("document", default)),
    }
    limits = [n for n in (model.max_seq_length, model.tokenizer.model_max_length) if n and n < 1_000_000]
    if not limits:
        raise ModelError(f"{name} does not say how long a text it takes (max_seq_length)")
    return LocalEmbedder(
        name,
        revision,
        _dimension(model),
        huggingface_tokens(backend, min(limits), prefixes),
        PaddedNetwork(model, model.tokenizer.pad_token_id or 0),
        lambda: PaddedNetwork(model, model.tokenizer.pad_token_id or 0),
        overlap,
        batch_tokens,
        count,
    )


def _dimension(model: Any) -> int:
    # Renamed in sentence-transformers 5.
    read = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(read())


def content_revision(folder: Path) -> str:
    """64 hex digits over names and contents of the files that a model in a folder of the user's own consists of."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in _CONTENT and p.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def download(name: str, revision: str, folder: Path) -> str:
    """Fetch a model from the Hugging Face hub into an empty folder; returns the commit that it is.

    Raises:
        ModelError: no such model or revision, or the hub cannot be reached.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        raise ModelError(f"{name} needs the sentence-transformers package ({error}): {INSTALL}") from None
    try:
        commit = str(HfApi().model_info(name, revision=revision or None).sha)
        patterns = [f"*{suffix}" for suffix in _CONTENT]
        snapshot_download(name, revision=commit, local_dir=folder, allow_patterns=patterns)
    except Exception as error:  # network, name, permission: the hub's and httpx's own errors
        raise ModelError(f"{name} cannot be fetched from the model hub: {type(error).__name__}: {error}") from None
    return commit
