"""`groundwatch demo`: the main job on embedded services, with an incident to see."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
from rich.console import Console

from consumer.finite import FiniteRange
from consumer.output_places import check_outputs

SHORTEST = 60.0
PLAIN_WIDTH = 200


class Duration(click.ParamType):
    """`90s`, `2m`, `1h` or a number of seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no duration; write 90s, 2m or 1h", param, ctx)
        seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
        if seconds < SHORTEST:
            self.fail(f"the story takes {SHORTEST:.0f}s at least", param, ctx)
        return seconds


@click.command("demo")
@click.option("--for", "seconds", type=Duration(), default="90s", show_default=True, help="How long traffic runs.")
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Write what happened as JSON.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other conversations.")
@click.option(
    "--rate", type=FiniteRange(1, 500), default=16.0, show_default=True, help="Records a second on the topic."
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save the view during the second incident as SVG.",
)
@click.option(
    "--cases", type=click.Path(path_type=Path, dir_okay=False), help="Write the case files, for `cases --in FILE`."
)
def command(
    seconds: float, summary: Path | None, seed: int, rate: float, picture: Path | None, cases: Path | None
) -> None:
    """Run everything on embedded services: a simulated help desk, both workers, and two incidents that the gauges show.

    First the documents are updated and the model goes on answering from the old ones, then retrieval returns the wrong
    documents. Nothing is installed or left behind. Exit codes: 0 both were seen, 1 one was not (or a part failed).
    """
    # Late, so that --help does not pay for the Kafka client.
    from consumer.demo.ending import Files
    from consumer.demo.run import Options, run_demo
    from consumer.demo.services import DemoError
    from consumer.embedded import EmbeddedError
    from consumer.score_file import FileUnusable
    from consumer.topics import TopicsError

    check_outputs({"--summary": summary, "--picture": picture, "--cases": cases}, {})
    for file in (summary, picture, cases):
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"{file}: there is no folder {file.parent}")
    console = Console()
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    try:
        code = run_demo(Options(seconds, rate, seed, Files(summary, picture, cases)), os.environ, console)
    except (DemoError, EmbeddedError, TopicsError, FileUnusable) as error:
        raise click.ClickException(str(error)) from None
    raise SystemExit(code)
