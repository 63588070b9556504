"""The gates of `score-file`, for automated runs: what each looks at, and the line that says why it says no."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from consumer.comparison import NOISE, Difference, Joined, OldScores
from consumer.score_summary import FlagCounts, MetricSummary


@dataclass(frozen=True, slots=True)
class Gates:
    """What an automated run insists on: the lowest mean by metric, the largest share of flagged answers."""

    floors: Mapping[str, float]
    max_flagged: float | None


def read_floors(given: Iterable[str], bounds: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """`METRIC=VALUE` options as a mapping; `bounds` are the ranges of the metrics that are scored.

    Raises:
        ValueError: a metric that is not scored, or a value that is no number inside the metric's range.
    """
    floors: dict[str, float] = {}
    for option in given:
        metric, equals, raw = option.partition("=")
        metric = metric.strip()
        if not equals or metric not in bounds:
            raise ValueError(f"{option!r}: give METRIC=VALUE with one of the scored metrics {', '.join(bounds)}")
        low, high = bounds[metric]
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"{option!r}: {metric} lies in [{low:g}, {high:g}], so VALUE must too")
        floors[metric] = value
    return floors


def below_floor(floors: Mapping[str, float], metrics: Iterable[MetricSummary]) -> list[str]:
    """One line for each metric whose mean is under its floor, or that has no mean at all."""
    reasons = []
    for m in metrics:
        floor = floors.get(m.metric)
        if floor is None:
            continue
        if m.mean is None:
            missing = ", ".join(f"{reason} {count}" for reason, count in m.unscored.items()) or "no events"
            reasons.append(f"--fail-under {m.metric}={floor:g}: no event has a value ({missing})")
        elif m.mean < floor:
            interval = "" if m.low is None else f", 95 % interval [{m.low:.4f}, {m.high:.4f}]"
            reasons.append(f"--fail-under {m.metric}={floor:g}: the mean is {m.mean:.4f} (n = {m.scored}{interval})")
    return reasons


def too_many_flagged(most: float | None, flags: FlagCounts) -> list[str]:
    """One line if a larger share is flagged, or if no answer could have been."""
    if most is None:
        return []
    share = flags.share
    if share is None:
        return [
            f"--max-flagged {most:g}: no answer has a score with a threshold, so nothing could be flagged; "
            "set thresholds.default"
        ]
    if share <= most:
        return []
    by_flag = ", ".join(f"{flag} {count}" for flag, count in flags.by_flag.most_common())
    return [f"--max-flagged {most:g}: {flags.flagged} of {flags.could_be} answers are flagged, {share:.4f} ({by_flag})"]


def fallen(joined: Joined, differences: Sequence[Difference]) -> list[str]:
    """One line for each metric that fell, or one if nothing could be compared."""
    if joined.both == 0:
        return ["--against: no id is in both files, so nothing could be compared"]
    if not any(d.pairs for d in differences):
        return ["--against: no event has a score in both files, so nothing could be compared"]
    return [
        f"--against: {d.metric} fell by {-d.difference:.4f}, from {d.old:.4f} to {d.new:.4f} "
        f"(95 % interval of the difference [{d.low:.4f}, {d.high:.4f}], {d.pairs} pairs)"
        for d in differences
        if d.fell
    ]


def comparison_view(old: OldScores, joined: Joined, differences: Sequence[Difference]) -> RenderableType:
    """What the comparison found: how the files met, the differences, and the worst regressions."""
    met = (
        f"compared by id: {joined.both} in both ({joined.changed} with changed content), "
        f"{joined.only_new} only in the new file, {joined.only_old} only in the old one"
    )
    repeated = old.repeated + joined.repeated
    if repeated:
        met += f"; {repeated} repeated ids left out"
    if old.unreadable:
        met += f"; {len(old.unreadable)} lines of the old file hold no record (first: {old.unreadable[0]})"
    table = Table(title="new minus old", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in ("pairs", "old", "new", "difference", "95 % interval", "lost", "gained"):
        table.add_column(name, justify="right", no_wrap=True)
    for d in differences:
        interval = "-" if d.low is None or d.high is None else f"[{d.low:+.4f}, {d.high:+.4f}]"
        means = (f"{d.old:.4f}", f"{d.new:.4f}", f"{d.difference:+.4f}") if d.pairs else ("-", "-", "-")
        table.add_row(d.metric, str(d.pairs), *means, interval, str(d.lost), str(d.gained))
    return Group(Text(met), table, _worst(differences))


def comparison_json(joined: Joined, differences: Sequence[Difference]) -> dict[str, Any]:
    """The comparison as a JSON object."""
    return {"joined": asdict(joined), "metrics": {d.metric: asdict(d) | {"fell": d.fell} for d in differences}}


def _worst(differences: Sequence[Difference]) -> RenderableType:
    table = Table(title="worst regressions", title_justify="left")
    table.add_column("metric", no_wrap=True)
    table.add_column("id", overflow="fold")
    for name in ("old", "new"):
        table.add_column(name, justify="right", no_wrap=True)
    for d in differences:
        for regression in d.worst:
            if regression.old - regression.new > NOISE:
                table.add_row(d.metric, Text(regression.id), f"{regression.old:.4f}", f"{regression.new:.4f}")
    return table if table.row_count else Text("no event fell by more than 0.001")
