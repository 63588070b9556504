"""The distributions of a validated set with their thresholds, as a picture (PNG, SVG or PDF, by the file's name).

Imported only where a picture is drawn: matplotlib is an extra (`groundwatch[plots]`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from consumer.calibrate import ScoredSet
from consumer.calibrate_view import segment_name
from metrics.answer import Segment
from metrics.baseline import Baseline

MOST_SEGMENTS = 5
"""Columns at most: the whole set, and the largest segments with a threshold of their own."""
GOOD, BAD, LINE = "#2f6f8f", "#c8553d", "#222222"


def draw(baseline: Baseline, good: ScoredSet, bad: ScoredSet, file: Path) -> None:
    """A row for each metric, a column for the whole set and for each segment with a threshold of its own.

    Raises:
        OSError: the file cannot be written.
        ValueError: matplotlib does not know this kind of file.
    """
    metrics = list(dict.fromkeys(d.metric for d in baseline.distributions))
    columns = _columns(baseline)
    thresholds = {(t.metric, t.segment): t for t in baseline.thresholds}
    # Text stays text in an SVG: smaller, and readable in any script that the viewer has a font for.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "groundwatch"}):
        figure = Figure(figsize=(4.2 * len(columns), 2.3 * len(metrics) + 0.4), layout="constrained")
        axes = figure.subplots(len(metrics), len(columns), squeeze=False)
        for row, metric in enumerate(metrics):
            for column, segment in enumerate(columns):
                threshold = thresholds.get((metric, segment))
                _panel(
                    axes[row][column], good.values(metric, segment), bad.values(metric, segment),
                    None if threshold is None else threshold.value,
                )  # fmt: skip
                name = segment_name(baseline.segment_keys, segment)
                axes[row][column].set_title(f"{metric}, {name}", fontsize=9, loc="left")
        axes[0][0].legend(fontsize=8, frameon=False, loc="upper left")
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def _columns(baseline: Baseline) -> list[Segment]:
    sizes: dict[Segment, int] = {}
    for threshold in baseline.thresholds:
        sizes[threshold.segment] = max(sizes.get(threshold.segment, 0), threshold.operating.n_good)
    everything = tuple("all" for _ in baseline.segment_keys)
    own = sorted((s for s in sizes if s != everything), key=lambda s: -sizes[s])
    return [everything, *own[: MOST_SEGMENTS - 1]]


def _panel(axes: Any, good: Sequence[float], bad: Sequence[float], threshold: float | None) -> None:
    both = [*good, *bad]
    if not both:
        axes.text(0.5, 0.5, "no scores", ha="center", transform=axes.transAxes, fontsize=8)
        return
    low, high = min(both), max(both)
    pad = max((high - low) * 0.03, 0.01)
    edges = np.linspace(low - pad, high + pad, 41).tolist()
    for values, colour, name in ((good, GOOD, "good"), (bad, BAD, "bad")):
        if values:
            weights = [1.0 / len(values)] * len(values)
            axes.hist(
                values,
                edges,
                weights=weights,
                histtype="stepfilled",
                color=colour,
                alpha=0.6,
                label=f"{name} (n = {len(values)})",
            )
    if threshold is not None:
        axes.axvline(threshold, color=LINE, linewidth=1.2, linestyle="--", label=f"threshold {threshold:.3f}")
    axes.tick_params(labelsize=8)
    axes.set_ylabel("share", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
