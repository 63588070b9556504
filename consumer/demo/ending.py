"""What the demo says once the story is over: the case that explains each incident, the figures, summary and picture."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from consumer.case_file import CaseFile, encode_case
from consumer.case_rendering import Style, rendered
from consumer.case_store import CaseStoreError, open_store
from consumer.demo.script import EXPECTED, Scheduled
from consumer.demo.services import Services
from consumer.demo.story import State, Story
from consumer.demo.tally import Tally
from consumer.demo.view import render
from consumer.score_file import written

PICTURE_WIDTH = 112
PAGE_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Files:
    """What to write; None: not wanted."""

    summary: Path | None
    picture: Path | None
    cases: Path | None


def command_of(running: Services) -> str:
    """How a command is started on the demo's services."""
    return f"{executable()} --settings {running.file}"


def executable() -> str:
    """What a person types for `groundwatch` in this shell: its path, where the virtual environment is not active."""
    if shutil.which("groundwatch"):
        return "groundwatch"
    beside = Path(sys.executable).with_name("groundwatch")
    if not beside.exists():
        return f"{sys.executable} -m consumer"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)


def case_pages(running: Services, tally: Tally, incidents: Sequence[Scheduled], width: int) -> list[str]:
    """What `groundwatch cases show ID` prints of the case that explains each incident.

    The services, and with them the case files, are gone when somebody reads this; so it is fetched while they are up.
    """
    pages = []
    for incident in incidents:
        best = tally.best.get(incident.act.fault)
        if best is None:
            continue
        title = f"{incident.act.name}: what `groundwatch cases show {best.record.id}` said"
        case = _stored(running, best)
        pages.append(
            f"\n{click.style(title, bold=True, reverse=True)}\n{rendered(case, Style(min(width, PAGE_WIDTH)))}\n"
        )
    return pages


def _stored(running: Services, case: CaseFile) -> CaseFile:
    """As Redis has it; as it was heard where Redis has not got it yet."""
    try:
        store = open_store(running.settings)
        try:
            return next(iter(store.find(case.record.id)), case)
        finally:
            store.close()
    except CaseStoreError:
        return case


def tell_end(
    story: Story,
    tally: Tally,
    picture: tuple[State, tuple[CaseFile, ...]] | None,
    files: Files,
    console: Console,
) -> None:
    """The figures, what was not seen, and the files. A run that scored nothing leaves those of an earlier one.

    Raises:
        FileUnusable: a file cannot be written.
    """
    summary = summary_of(story, tally)
    counts = story.counts
    console.print(
        f"events {counts.events} = sampled out {counts.sampled_out} + ignored {counts.ignored} + scored {counts.scored}"
        f" + unscored {counts.unscored} + dead letters {counts.dead_lettered} + in flight {counts.in_flight}",
        highlight=False,
    )
    bad, good = (summary[name] for name in ("bad_answers", "good_answers"))
    console.print(
        f"flagged: {bad['flagged']} of {bad['scored']} scored answers that the script made bad, "
        f"{good['flagged']} of {good['scored']} good ones",
        highlight=False,
    )
    for incident in summary["incidents"]:
        if incident["seen_seconds"] is not None:
            faults = ", ".join(f"{name} {number}" for name, number in incident["likely_faults"].items()) or "none"
            console.print(
                f"{incident['name']}: seen {incident['seen_seconds']:.1f} s after it began; likely fault: {faults}",
                highlight=False,
            )
    elapsed = story.state().elapsed
    for missed in story.missed():
        if elapsed >= missed.end:
            expected = " and ".join(EXPECTED[missed.act.fault].fall)
            console.print(
                f"{missed.act.name}: NOT seen: {expected} did not fall as they should (a machine that is too busy? "
                "try --for 3m)",
                highlight=False,
            )
    if not (counts.events or tally.records or tally.cases):
        if files.summary or files.cases or files.picture:
            console.print("nothing was scored, so no file is written", highlight=False)
        return
    if files.summary is not None:
        _write(files.summary, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
        console.print(f"summary: {files.summary}", highlight=False)
    if files.cases is not None:
        _write(files.cases, b"".join(encode_case(case) + b"\n" for case in tally.cases))
        console.print(f"flagged answers: {executable()} cases list --in {files.cases}", highlight=False, soft_wrap=True)
    if files.picture is not None and picture is not None:
        _write(files.picture, drawn(*picture).encode())
        console.print(f"picture: {files.picture}", highlight=False)


def _write(path: Path, content: bytes) -> None:
    with written(path, sys.stdout.buffer) as sink:
        sink.write(content)


def summary_of(story: Story, tally: Tally) -> dict[str, Any]:
    """The JSON object of `--summary`: see `Story.summary` and `Tally.summary`; `incidents` has both parts of each."""
    whole = story.summary() | tally.summary()
    whole["incidents"] = [
        incident | tally.incident(scheduled.act.fault)
        for incident, scheduled in zip(whole["incidents"], story.incidents, strict=True)
    ]
    return whole


def drawn(state: State, flagged: tuple[CaseFile, ...]) -> str:
    """The view as SVG."""
    paper = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
    paper.print(render(state, flagged))
    picture = paper.export_svg(title="groundwatch demo")
    # Rich names fonts on somebody's server; a picture must not load anything.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
