"""What `groundwatch calibrate` prints: per metric and segment the distribution, the threshold, and what it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from consumer.calibrate import Missing
from metrics.answer import ALL, Segment
from metrics.baseline import Baseline, BaselineThreshold
from metrics.threshold_choice import Rule


def segment_name(keys: Sequence[str], segment: Segment) -> str:
    """`app=hr,lang=zh`, as settings write it; `all` for the whole set."""
    return ",".join(f"{key}={value}" for key, value in zip(keys, segment, strict=True) if value != ALL) or ALL


def baseline_tables(baseline: Baseline) -> Iterator[Table]:
    """A table for each metric, a row for each distribution, the threshold beside it where the segment has its own."""
    thresholds = {(t.metric, t.segment): t for t in baseline.thresholds}
    with_bad = any(t.operating.n_bad for t in baseline.thresholds)
    for metric in dict.fromkeys(d.metric for d in baseline.distributions):
        table = Table(title=f"{metric} (definition {baseline.definitions[metric]})", title_justify="left")
        table.add_column("segment", overflow="fold")
        columns = ["n", "mean", "spread", "p5", "median", "threshold", "chosen by", "false alarms (95 %)"]
        for name in columns + (["bad", "AUROC", "recall", "precision", "held out"] if with_bad else []):
            table.add_column(name, justify="right", no_wrap=True)
        for d in baseline.distributions:
            if d.metric == metric:
                shape = (d.mean, d.spread, d.quantile(0.05), d.quantile(0.5))
                row = [str(d.n), *(f"{value:.3f}" for value in shape)]
                row += _threshold(thresholds.get((metric, d.segment)), with_bad)
                table.add_row(Text(segment_name(baseline.segment_keys, d.segment)), *row)
        yield table


def notes(baseline: Baseline, missing: Sequence[Missing], rule: Rule, fewest: int) -> Iterator[str]:
    """Lines below the tables: where there is no threshold, and what a reader must know about those that there are."""
    keys = baseline.segment_keys
    for m in missing:
        yield f"no threshold for {m.metric}, {segment_name(keys, m.segment)}: {m.why}"
    for t in baseline.thresholds:
        if t.method != rule.method and all(value == ALL for value in t.segment):
            said = f"{t.metric} does not tell these good answers from these bad ones ({_evidence(t)})"
            yield f"{said}: set by false alarms"
    if any(t.operating.held_out_recall is not None for t in baseline.thresholds):
        yield "held out: recall / false alarms on tenths of the set that the threshold was not set from"
    if any(d.n < fewest and any(value != ALL for value in d.segment) for d in baseline.distributions):
        yield (
            f"a segment with fewer than {fewest} good answers has no threshold of its own (--min-segment): "
            "that of the next wider segment applies"
        )


def _threshold(found: BaselineThreshold | None, with_bad: bool) -> list[str]:
    if found is None:
        return [""] * (8 if with_bad else 3)
    o = found.operating
    alarms = f"{o.false_alarms:.1%} [{o.false_alarms_low:.1%}, {o.false_alarms_high:.1%}]"
    row = [f"{found.value:.4f}", str(Rule(found.method, found.target)), alarms]
    if not with_bad:
        return row
    held = "-"
    if o.held_out_recall is not None and o.held_out_false_alarms is not None:
        held = f"{o.held_out_recall:.2f} / {o.held_out_false_alarms:.1%}"
    return [*row, str(o.n_bad), _share(o.auroc), _share(o.recall), _share(o.precision), held]


def _evidence(threshold: BaselineThreshold) -> str:
    o = threshold.operating
    return f"{o.n_good} and {o.n_bad}" + ("" if o.auroc is None else f", AUROC {o.auroc:.2f}")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
