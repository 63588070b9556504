"""The terminal view: a pure function of the demo's state."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from consumer.case_file import CaseFile
from consumer.case_parts import FAULTS, SIGNS, answer_pieces, worst_first
from consumer.case_rendering import COLOURS
from consumer.demo.readings import ALL
from consumer.demo.script import Fault, current
from consumer.demo.story import Note, Row, State
from consumer.inert_text import inert

BLOCKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24
NOTES_SHOWN = 5
FLAGGED_SHOWN = 2
TALL = 38
"""Lines of a terminal on which everything has room; a lower one goes without the segments."""


def render(state: State, flagged: Sequence[CaseFile] = (), height: int = TALL) -> RenderableType:
    """The whole view; `flagged` are cases, the newest last."""
    rows = [row for row in state.rows if height >= TALL or row.segment == ALL]
    return Group(
        _header(state), _counts(state), _scores(state, rows), _signals(state), _flagged(flagged), _notes(state.notes)
    )


def plain_line(state: State) -> str:
    """One line for where there is no terminal."""
    first = state.rows[0]
    score = "no score yet"
    if first.now is not None:
        score = (
            f"{first.metric} {first.now.value:.3f} [{first.now.low:.3f}, {first.now.high:.3f}] n={first.now.samples}"
        )
    counts = state.counts
    return (
        f"{state.elapsed:6.1f} s  {current(state.scheduled, state.elapsed).act.name:<15}  {score}  "
        f"events {counts.events}, sampled out {counts.sampled_out}, scored {counts.scored}, "
        f"unscored {counts.unscored}, dead letters {counts.dead_lettered}"
        + ("  alerts: " + ", ".join(alert.name for alert in state.firing) if state.firing else "")
    )


def note_line(note: Note) -> str:
    """One line for something that happened."""
    return f"{note.at:6.1f} s  {'!' if note.alarm else '-'} {note.text}"


def sparkline(values: Sequence[float], low: float, high: float, width: int = SPARK_WIDTH) -> str:
    """The newest `width` points of `values`, each the mean of an equal stretch, between `low` and `high`.

    >>> sparkline([0.0, 0.5, 1.0], 0.0, 1.0, 3)
    '▁▅█'
    """
    if not values:
        return ""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    span = high - low
    if span <= 0:
        return BLOCKS[len(BLOCKS) // 2] * len(values)
    steps = [int((min(max(v, low), high) - low) / span * len(BLOCKS)) for v in values]
    return "".join(BLOCKS[min(step, len(BLOCKS) - 1)] for step in steps)


def _header(state: State) -> RenderableType:
    act = current(state.scheduled, state.elapsed)
    total = state.scheduled[-1].end
    faulty = act.act.fault is not Fault.NONE
    line = Text.assemble(
        (f" {act.act.name} ", "bold white on red" if faulty else "bold white on dark_green"),
        f"  {act.act.text}",
    )
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=total, completed=min(state.elapsed, total), width=48),
        f"{min(state.elapsed, total):.0f} of {total:.0f} s",
    )
    return Panel(
        Group(line, bar), title="Groundwatch demo: is what the help desk answers grounded?", title_align="left"
    )


def _counts(state: State) -> RenderableType:
    counts = state.counts
    table = Table(expand=True, box=None, header_style="dim", padding=(0, 1))
    cells = (
        ("events", f"{counts.events}  ({state.events_rate:.0f}/s)"),
        ("sampled out", str(counts.sampled_out)),
        ("ignored", str(counts.ignored)),
        ("scored", f"{counts.scored}  ({state.scored_rate:.0f}/s)"),
        ("unscored", str(counts.unscored)),
        ("dead letters", str(counts.dead_lettered)),
        ("in flight", str(max(counts.in_flight, 0))),
        ("cache hits", _hit_share(state)),
    )
    for name, _ in cells:
        table.add_column(name)
    table.add_row(*(value for _, value in cells))
    return table


def _hit_share(state: State) -> str:
    counts = state.counts
    return f"{counts.cache_hits / counts.cache_look_ups:.0%}" if counts.cache_look_ups else "-"


def _scores(state: State, rows: Sequence[Row]) -> RenderableType:
    table = Table(expand=True, box=SIMPLE_HEAD, header_style="bold", padding=(0, 1))
    table.add_column(f"rolling score, last {state.window}", no_wrap=True)
    table.add_column("mean, 95 % interval", min_width=21, no_wrap=True)
    table.add_column("n", justify="right", min_width=3, no_wrap=True)
    table.add_column("since the start", min_width=SPARK_WIDTH, no_wrap=True)
    table.add_column("", min_width=1, no_wrap=True)
    for row in rows:
        table.add_row(*_score_cells(row, _range(rows, row.metric)))
    return table


def _signals(state: State) -> RenderableType:
    """Which alerts fire, and how far the answers' topic distance lies from that of calm traffic."""
    firing = " ".join(alert.name for alert in state.firing)
    distance = "-" if state.distance is None else f"{state.distance:.4f}"
    return Text.assemble(
        " alerts: ",
        (firing, "bold red") if firing else ("none", "green"),
        f"   topic distance, Wasserstein to calm: {distance}",
        no_wrap=True,
        overflow="ellipsis",
    )


def _flagged(cases: Sequence[CaseFile]) -> RenderableType:
    lines = flagged_lines(cases[-FLAGGED_SHOWN:])
    lines += [Text("")] * (3 * FLAGGED_SHOWN - len(lines))
    return Panel(Group(*lines), title="newest flagged answers", title_align="left")


def flagged_lines(cases: Sequence[CaseFile]) -> list[Text]:
    """Three lines a case, the newest (the last) first: the question, the answer with the wrong statement marked, and
    what is wrong with it."""
    return [line for case in reversed(cases) for line in _flagged_lines(case)]


def _flagged_lines(case: CaseFile) -> list[Text]:
    answer = Text("A: ", no_wrap=True, overflow="ellipsis")
    for piece, at in answer_pieces(case.answer or "", case.statements):
        label = "supported" if at is None else case.statements[at].label
        wrong = label in ("contradicted", "not_found")
        shown = inert(piece).strip() if wrong else inert(piece)
        answer.append(f"{SIGNS[label]}[{shown}]" if wrong else shown, f"bold {COLOURS[label]}" if wrong else "")
        answer.append(" " if wrong else "")
    worst = worst_first(case.statements)[:1]
    reason = worst[0][1].reason if worst and worst[0][1].label != "supported" else ", ".join(case.record.flags)
    why = FAULTS.get(case.record.fault, "").partition(":")[0]
    return [
        Text(f"Q: {inert(case.question or '-')}", no_wrap=True, overflow="ellipsis"),
        answer,
        Text.assemble(
            f"   {inert(reason)}; likely fault ",
            (inert(case.record.fault), "bold"),
            f" ({why})",
            style="dim",
            no_wrap=True,
            overflow="ellipsis",
        ),
    ]


def _range(rows: Sequence[Row], metric: str) -> tuple[float, float]:
    """All lines of one metric share a scale, or their heights could not be compared."""
    values = [value for row in rows if row.metric == metric for value in row.history]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _score_cells(row: Row, scale: tuple[float, float]) -> tuple[RenderableType, ...]:
    style = "bold red" if row.fallen else "green"
    mean = Text("insufficient samples", style="dim")
    samples = "0"
    if row.now is not None:
        mean = Text(f"{row.now.value:.3f}  [{row.now.low:.3f}, {row.now.high:.3f}]", style=style)
        samples = str(row.now.samples)
    mark = Text("▼", style="bold red") if row.fallen else Text("")
    name = row.metric if row.segment == ALL else f"  {row.segment}"
    return name, mean, samples, Text(sparkline(row.history, *scale), style=style), mark


def _notes(notes: Sequence[Note]) -> RenderableType:
    lines = [Text(note_line(note), style="red" if note.alarm else "") for note in notes[-NOTES_SHOWN:]]
    lines += [Text("")] * (NOTES_SHOWN - len(lines))
    return Panel(Group(*lines), title="what happened", title_align="left")
