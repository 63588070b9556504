"""The `groundwatch` command. Commands are imported when they are called: the monitor must not pay for torch."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from consumer.settings_source import Loaded, SettingsError, load

COMMANDS = {
    "decode": "Show which form a record has and what was read, field by field.",
    "score": "Consume, sample and score events (the scorer).",
    "monitor": "Turn score records into rolling gauges (the monitor).",
    "run": "Scorer and monitor under one parent.",
    "topics": "Create and show the topics.",
    "models": "Prepare, list and verify the models.",
    "prompts": "Show and adapt the prompts of the LLM judge.",
    "judge-check": "Try the LLM judge on cases with known verdicts.",
    "calibrate": "Score a validated set; write a baseline with thresholds.",
    "correlate": "Agreement of each metric with human ratings.",
    "contrast": "Which labels explain how a metric moved.",
    "score-file": "Score a file of events.",
    "send": "Put a file of events on the topic.",
    "demo": "The main job on embedded services, with an incident.",
    "doctor": "Check broker, topics, Redis, model and settings.",
    "settings": "Print what is in force, and where each value came from.",
    "cases": "List, show, export and forget case files.",
    "label": "Label answers good or bad; export and import labels.",
    "deadletters": "List dead letters by reason.",
    "redrive": "Send dead letters back after a fix.",
    "plan": "What a load needs: cores, memory, money.",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if find_spec(_module(name))]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(_module(name))
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _module(command: str) -> str:
    return f"consumer.commands.{command.replace('-', '_')}"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--settings", "file", type=click.Path(path_type=Path), help="Settings file (default: ./groundwatch.toml)."
)
@click.version_option(package_name="groundwatch", prog_name="groundwatch")
@click.pass_context
def group(ctx: click.Context, file: Path | None) -> None:
    """Groundwatch watches the answers of a question-answering (RAG) system and says whether they are grounded."""
    ctx.obj = file


def loaded_settings(ctx: click.Context) -> Loaded:
    """The settings in force; a fault in them ends the command with one clear message and exit code 2."""
    try:
        return load(ctx.obj, os.environ)
    except SettingsError as error:
        raise click.UsageError(f"settings:\n{error}") from None


def main() -> None:
    sys.exit(group.main(prog_name="groundwatch", standalone_mode=True))
