"""Reliability diagrams as a picture.

Imported only where one is drawn: matplotlib is an extra (`groundwatch[plots]`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from metrics.agreement import Bin


def draw(diagrams: Mapping[str, Sequence[Bin]], calibrated: Sequence[str], file: Path) -> None:
    """A panel for each metric: score against the share of good answers, with intervals.

    `calibrated`: metrics that are shares themselves, for which the diagonal is drawn.

    Raises:
        OSError: the file cannot be written.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "groundwatch"}):
        figure = Figure(figsize=(3.6 * len(diagrams), 3.4), layout="constrained")
        panels = figure.subplots(1, len(diagrams), squeeze=False)[0]
        for panel, (metric, bins) in zip(panels, diagrams.items(), strict=True):
            scores, good = [b.mean_score for b in bins], [b.good for b in bins]
            below = [b.good - b.good_low for b in bins]
            above = [b.good_high - b.good for b in bins]
            panel.errorbar(scores, good, yerr=[below, above], marker="o", color="#2f6f8f", capsize=3, linewidth=1.2)
            if metric in calibrated:
                panel.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle=":")
            panel.set_ylim(-0.03, 1.03)
            panel.set_title(metric, fontsize=9, loc="left")
            panel.set_xlabel("score", fontsize=8)
            panel.set_ylabel("share of good answers", fontsize=8)
            panel.tick_params(labelsize=8)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)
