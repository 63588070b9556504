"""`groundwatch models`: prepare, list and verify the models. Nothing else in Groundwatch ever asks a model hub."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from consumer.cli import loaded_settings
from consumer.embedders import ENDPOINT, NoEmbedder, load_embedder
from consumer.local_models import models_dir, prepare_torch
from consumer.settings import Embedding, Settings
from metrics.embedding import uncounted
from metrics.model_files import Manifest, ModelError, damaged_files, read_manifest
from metrics.model_store import SOURCES, hub_model, prepare_hub_model, prepared, ready_model
from metrics.packaged_model import NAME as BASE
from metrics.self_test import faults
from metrics.verifier.shipped_files import LICENCE, NAME, checked_files

ENGLISH_ONLY = ("all-MiniLM-L6-v2",)


@click.group("models")
def command() -> None:
    """Prepare, list and verify the models."""


@command.command()
@click.argument("name", required=False)
@click.option("--revision", default="", help="Leading hex digits, or a branch of the hub; default: embedding.revision.")
@click.pass_context
def prepare(ctx: click.Context, name: str | None, revision: str) -> None:
    """Make model NAME ready for use, from its package or, by name, from the model hub.

    NAME `verifier` stands for what judge.kind = "local" uses. Default: embedding.model, and with that judge its model.
    """
    settings = loaded_settings(ctx).settings
    with _clear_errors():
        if name is None or name not in _of_the_judge(settings):
            _prepare(_named(settings.embedding, name, revision))
        if name in _of_the_judge(settings) or (name is None and settings.judge.kind == "local"):
            _prepare(_judges_model(settings, revision if name else ""))


def _of_the_judge(settings: Settings) -> tuple[str, ...]:
    return (NAME, settings.judge.local_model) if settings.judge.local_model else (NAME,)


def _judges_model(settings: Settings, revision: str) -> Embedding:
    """What lies in the store for the local judge: the model of the settings, else the base of the shipped verifier."""
    judge = settings.judge
    wanted = judge.local_model or BASE
    pinned = (revision or judge.local_revision) if judge.local_model else checked_files().base
    return settings.embedding.model_copy(update={"model": wanted, "revision": pinned})


def _prepare(wanted: Embedding) -> None:
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
    try:
        files = checked_files()
        state = f"installed, SHA-256 {files.sha256[:12]}, over {BASE} {files.base}"
    except ModelError as error:
        state = f"not usable: {error}"
    click.echo(f"package   {NAME}  (groundwatch, {LICENCE}; {state})")
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
    """Check model NAME: checksums of its files, then what it says about known texts.

    NAME `verifier` stands for what judge.kind = "local" uses. Default: embedding.model, and with that judge its model.
    """
    settings = loaded_settings(ctx).settings
    failed: list[str] = []
    with _clear_errors():
        if name is None or name not in _of_the_judge(settings):
            failed = _verified(_named(settings.embedding, name, ""))
        if name in _of_the_judge(settings) or (name is None and settings.judge.kind == "local"):
            failed += _verified_judge(settings)
    for line in failed:
        click.echo(f"FAILED    {line}")
    if failed:
        raise click.exceptions.Exit(1)


def _verified(settings: Embedding) -> list[str]:
    """What is wrong, one line each; what is right is printed on the way."""
    damaged = _damaged(settings)
    if damaged:
        return damaged
    loaded = load_embedder(settings, uncounted)
    languages = ("en",) if settings.model in ENGLISH_ONLY else ("en", "zh")
    found = faults(loaded.embedder, loaded.revision[:12], languages)
    if not found:
        click.echo(f"self-test passed: {loaded.note}")
    return found


def _damaged(settings: Embedding) -> list[str]:
    """Files of a prepared model that have changed, one line each; nothing for an endpoint or a folder of the user's."""
    if settings.model == ENDPOINT or (settings.model not in SOURCES and Path(settings.model).expanduser().is_dir()):
        return []
    find = ready_model if settings.model in SOURCES else hub_model
    folder = find(models_dir(settings), settings.model, settings.revision)
    manifest = read_manifest(folder)
    damaged = damaged_files(folder, manifest)
    if not damaged:
        click.echo(f"checksums {len(manifest.files)} files of {manifest.name} {manifest.revision[:12]} are unchanged")
    return [f"{folder / path}: not the file that was prepared; delete {folder}, prepare anew" for path in damaged]


def _verified_judge(settings: Settings) -> list[str]:
    """The same of the local judge's model. What it gets wrong of known pairs is a `ModelError`: it is not used then."""
    if not settings.judge.local_model:
        files = checked_files()
        click.echo(f"checksums {NAME} {files.sha256} is the network that {files.joined.name} was fitted for")
    damaged = _damaged(_judges_model(settings, ""))
    if damaged:
        return damaged
    prepare_torch(settings.embedding.threads)
    # Late: whoever asks for nothing of the judge does not pay for it.
    from consumer.local_judges import build_local

    built = build_local(settings.judge, settings.embedding, NoEmbedder(), None, lambda: None)
    click.echo(f"known pairs passed: {built.network}")
    return []


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
