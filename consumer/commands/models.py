"""`groundwatch models`: prepare, list and verify the models. Nothing else in Groundwatch ever asks a model hub."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from consumer.cli import loaded_settings
from consumer.embedders import ENDPOINT, load_embedder, models_dir
from consumer.settings import Embedding
from metrics.embedding import uncounted
from metrics.model_files import Manifest, ModelError, damaged_files, read_manifest
from metrics.model_store import SOURCES, hub_model, prepare_hub_model, prepared, ready_model
from metrics.self_test import faults

ENGLISH_ONLY = ("all-MiniLM-L6-v2",)


@click.group("models")
def command() -> None:
    """Prepare, list and verify the models."""


@command.command()
@click.argument("name", required=False)
@click.option("--revision", default="", help="Leading hex digits, or a branch of the hub; default: embedding.revision.")
@click.pass_context
def prepare(ctx: click.Context, name: str | None, revision: str) -> None:
    """Make model NAME (default: embedding.model) ready for use, from its package or, by name, from the model hub."""
    settings = loaded_settings(ctx).settings.embedding
    wanted = _named(settings, name, revision)
    with _clear_errors():
        if wanted.model == ENDPOINT or Path(wanted.model).expanduser().is_dir():
            click.echo(f"{wanted.model}: nothing to prepare")
            return
        if wanted.model in SOURCES:
            folder = ready_model(models_dir(wanted), wanted.model, wanted.revision)
        else:
            from metrics.foreign_model import download

            folder = prepare_hub_model(models_dir(wanted), wanted.model, wanted.revision, download)
        click.echo(f"{wanted.model}: {folder} (revision {read_manifest(folder).revision})")


@command.command("list")
@click.pass_context
def list_models(ctx: click.Context) -> None:
    """Packaged models and whether they are installed; prepared models and where they lie."""
    settings = loaded_settings(ctx).settings.embedding
    for source in SOURCES.values():
        state = "installed" if source.file() else f"not installed: {source.install}"
        click.echo(f"package   {source.name}  ({source.package}, {source.licence}; {state})")
    home = models_dir(settings)
    found = prepared(home)
    for folder, manifest in found:
        if isinstance(manifest, Manifest):
            size = sum(size for _, size in manifest.files.values()) / 1e6
            click.echo(f"prepared  {manifest.name}  {manifest.revision[:12]}  {size:.0f} MB  {folder}")
        else:
            click.echo(f"damaged   {folder}: {manifest}")
    if not found:
        click.echo(f"prepared  none in {home}; run: groundwatch models prepare")


@command.command()
@click.argument("name", required=False)
@click.pass_context
def verify(ctx: click.Context, name: str | None) -> None:
    """Check model NAME (default: embedding.model): checksums of its files, then what it says about known texts."""
    settings = _named(loaded_settings(ctx).settings.embedding, name, "")
    with _clear_errors():
        failed = _verified(settings)
    for line in failed:
        click.echo(f"FAILED    {line}")
    if failed:
        raise click.exceptions.Exit(1)


def _verified(settings: Embedding) -> list[str]:
    """What is wrong, one line each; what is right is printed on the way."""
    store = models_dir(settings)
    if settings.model in SOURCES or (settings.model != ENDPOINT and not Path(settings.model).expanduser().is_dir()):
        find = ready_model if settings.model in SOURCES else hub_model
        folder = find(store, settings.model, settings.revision)
        manifest = read_manifest(folder)
        damaged = damaged_files(folder, manifest)
        if damaged:
            return [
                f"{folder / path}: not the file that was prepared; delete {folder}, prepare anew" for path in damaged
            ]
        click.echo(f"checksums {len(manifest.files)} files of {manifest.name} {manifest.revision[:12]} are unchanged")
    loaded = load_embedder(settings, uncounted)
    languages = ("en",) if settings.model in ENGLISH_ONLY else ("en", "zh")
    found = faults(loaded.embedder, loaded.revision[:12], languages)
    if not found:
        click.echo(f"self-test passed: {loaded.note}")
    return found


def _named(settings: Embedding, name: str | None, revision: str) -> Embedding:
    other = name is not None and name != settings.model
    return settings.model_copy(
        update={"model": name or settings.model, "revision": revision or ("" if other else settings.revision)}
    )


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """A `ModelError` ends the command with its message and exit code 1."""
    try:
        yield
    except ModelError as error:
        raise click.ClickException(str(error)) from None
