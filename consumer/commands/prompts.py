"""`groundwatch prompts`: show the LLM judge's prompts, and have the judge put them into another language."""

from __future__ import annotations

from pathlib import Path

import click

from consumer.cli import loaded_settings
from consumer.settings import Settings
from metrics.llm.prompts import FALLBACK, PromptBook, PromptError, load_book


@click.group("prompts")
def command() -> None:
    """Show and adapt the prompts of the LLM judge."""


@command.command()
@click.argument("language", required=False)
@click.pass_context
def show(ctx: click.Context, language: str | None) -> None:
    """Print the prompts of LANGUAGE (en, zh, ...) as the judge uses them; without it, which there are."""
    settings = loaded_settings(ctx).settings
    book = _book(settings)
    if language is None:
        own = settings.judge.prompts_dir
        for name, prompts in sorted(book.sets.items()):
            adapted = own is not None and any(prompts.text == _text(file) for file in own.glob("*.toml"))
            click.echo(f"{name}  {prompts.version}@{prompts.digest}  {own if adapted else 'shipped'}")
        click.echo(f"an event in another language gets those of {FALLBACK}")
        return
    if language not in book.sets:
        raise click.ClickException(
            f"no prompts for {language!r}; there are {', '.join(sorted(book.sets))}; "
            f"make some with: groundwatch prompts adapt --to {language}"
        )
    click.echo(book.sets[language].text.rstrip())


def _book(settings: Settings) -> PromptBook:
    try:
        return load_book(settings.judge.prompts_dir)
    except PromptError as error:
        raise click.ClickException(f"judge.prompts_dir: {error}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
