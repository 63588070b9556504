"""What `groundwatch correlate` prints and writes: agreement tables, reliability diagrams, strongest disagreements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from consumer.calibrate_view import segment_name
from consumer.correlation import Agreement, Disagreement
from consumer.inert_text import inert
from metrics.agreement import Bin, Estimate

BAR = 20
TEXT = 220
"""Characters of a question and of an answer that are shown of a disagreement."""


def agreement_tables(found: Sequence[Agreement], keys: tuple[str, ...]) -> Iterator[Table]:
    """A table for each metric, a row for each segment; every figure with its 95 % interval."""
    for metric in dict.fromkeys(a.metric for a in found):
        table = Table(title=f"{metric}: agreement with people (95 % intervals)", title_justify="left")
        table.add_column("segment", overflow="fold")
        for name in ("n", "good", "Spearman", "Kendall", "AUROC", "balanced accuracy"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("what can be concluded", overflow="fold")
        for a in found:
            if a.metric == metric:
                at = "" if a.threshold is None else f" at {a.threshold:g}"
                accuracy = _shown(a.balanced_accuracy) + (at if a.balanced_accuracy is not None else "")
                table.add_row(
                    Text(segment_name(keys, a.segment)), str(a.n), str(a.good), _shown(a.spearman), _shown(a.kendall),
                    _shown(a.auroc), accuracy, "; ".join(a.doubts) or _concluded(a),
                )  # fmt: skip
        yield table


def diagram_lines(diagrams: Mapping[str, Sequence[Bin]]) -> Iterator[str]:
    """The reliability diagram of each metric in characters: scores from low to high, the share of good answers."""
    for metric, bins in diagrams.items():
        yield f"{metric}: share of good answers by score"
        for b in bins:
            bar = "█" * round(b.good * BAR)
            yield (
                f"  {b.low:6.3f} to {b.high:6.3f}  n {b.n:5d}  {bar:<{BAR}} {b.good:.2f} "
                f"[{b.good_low:.2f}, {b.good_high:.2f}]"
            )


def disagreement_lines(found: Sequence[Disagreement]) -> Iterator[str]:
    """The strongest disagreements, to be read: a metric that is wrong in one way is wrong about many answers."""
    for metric in dict.fromkeys(d.metric for d in found):
        yield f"{metric}: strongest disagreements"
        for d in found:
            if d.metric == metric:
                said = f"score {d.score:.3f}, rating {d.row.rating:g}; {d.higher} thinks better of it"
                yield f"  {inert(d.row.id)}: {said}"
                for name, text in (("question", d.row.question), ("answer", d.row.answer)):
                    yield f"    {name:>8} │ {_short(text)}"


def as_json(
    found: Sequence[Agreement],
    diagrams: Mapping[str, Sequence[Bin]],
    disagreements: Sequence[Disagreement],
    keys: tuple[str, ...],
    cut: float,
) -> dict[str, Any]:
    """All of it without text: ids only."""
    return {
        "good_from": cut,
        "agreement": [
            {
                "metric": a.metric, "segment": segment_name(keys, a.segment), "n": a.n, "groups": a.groups,
                "good": a.good, "spearman": _json(a.spearman), "kendall": _json(a.kendall), "auroc": _json(a.auroc),
                "balanced_accuracy": _json(a.balanced_accuracy), "threshold": a.threshold, "doubts": list(a.doubts),
            }
            for a in found
        ],
        "reliability": {
            metric: [
                {"low": b.low, "high": b.high, "n": b.n, "mean_score": b.mean_score, "good": b.good,
                 "good_low": b.good_low, "good_high": b.good_high}
                for b in bins
            ]
            for metric, bins in diagrams.items()
        },
        "disagreements": [
            {"metric": d.metric, "id": d.row.id, "score": d.score, "rating": d.row.rating, "higher": d.higher}
            for d in disagreements
        ],
    }  # fmt: skip


def _concluded(a: Agreement) -> str:
    if a.spearman is None:
        return ""
    return "agrees with people" if a.spearman.above(0.0) else "disagrees with people"


def _shown(found: Estimate | None) -> str:
    if found is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _json(found: Estimate | None) -> dict[str, float | None] | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}


def _short(text: str) -> str:
    shown = inert(text)
    return shown if len(shown) <= TEXT else shown[: TEXT - 1] + "…"
