"""`groundwatch prompts`: show the LLM judge's prompts, and have the judge put them into another language."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from consumer.cli import loaded_settings
from consumer.settings import Settings
from metrics.llm.prompts import FALLBACK, PromptBook, PromptError, load_book

if TYPE_CHECKING:
    from metrics.llm.adapting import Adapted

ADAPT_SECONDS = 3600.0
"""A hundred small questions; a person who waits can end it."""


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


@command.command()
@click.option("--to", "language", required=True, metavar="LANG", help="Code of the language: de, fr, ja, ...")
@click.option("--name", help="What the language is called in English, where its code is not known here.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: judge.prompts_dir.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.pass_context
def adapt(ctx: click.Context, language: str, name: str | None, out: Path | None, force: bool) -> None:
    """Have the configured judge put the English prompts into another language, and save them.

    Line by line; every place and every name of the reply's form is kept, and words that stay English are refused. Read
    the result before you use it: a judge that knows the language badly words it badly.
    """
    settings = loaded_settings(ctx).settings
    folder = out or settings.judge.prompts_dir
    if folder is None:
        raise click.UsageError("say where to save them: --out DIR, or judge.prompts_dir in the settings")
    if settings.judge.kind != "llm":
        raise click.UsageError("this asks the judge: set judge.kind = 'llm', judge.url and judge.model")
    file = folder / f"{language}.toml"
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already; --force writes over it")
    made = _adapted(settings, language, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(made.prompts.text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    if made.unchanged:
        click.echo(f"the same in both languages, says the judge: {', '.join(made.unchanged)}")
    if made.left_out:
        click.echo(f"generic questions that it did not translate, left out: {' '.join(made.left_out)}")
    click.echo(f"{file}: read it, then compare: groundwatch judge-check --labelled FILE")
    if folder != settings.judge.prompts_dir:
        click.echo(f'to use it: judge.prompts_dir = "{folder}"')


def _adapted(settings: Settings, language: str, name: str | None) -> Adapted:
    from prometheus_client import CollectorRegistry

    from consumer.judging.building import build_client
    from consumer.judging.chat_client import unlimited
    from consumer.judging.judge_metrics import JudgeMetrics
    from metrics.llm.adapting import adapted
    from metrics.llm.chat import ChatError
    from metrics.model_files import ModelError

    book = _book(settings)
    try:
        client = build_client(settings.judge, JudgeMetrics(CollectorRegistry(), settings.judge.model), unlimited)
        chat = client.until(time.monotonic() + ADAPT_SECONDS)
        return adapted(book.sets[FALLBACK], language, chat, name, lambda text: click.echo(text, err=True))
    except ChatError as error:
        raise click.ClickException(f"the judge gives no reply: {error}; see: groundwatch doctor") from None
    except (PromptError, ModelError) as error:
        raise click.ClickException(str(error)) from None


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
