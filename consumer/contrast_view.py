"""A contrast for people: lines, a table, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from consumer.contrast_words import conclusion, share, subject, with_interval
from consumer.contrasting import Finding
from consumer.inert_text import inert
from consumer.score_topic import Range
from metrics.contrast import Contrast, Kind, Side, Verdict

WORDS = {
    Verdict.EXPLAINS: "explains",
    Verdict.AGAINST: "the other way",
    Verdict.NOISE: "like the rest",
    Verdict.TOO_FEW: "too few scores",
}


def lines(finding: Finding) -> Iterator[str]:
    """Everything but the table."""
    question, contrast = finding.question, finding.contrast
    where = ", ".join(f"{key}={inert(value)}" for key, value in question.segment.items()) or "all segments"
    yield f"{inert(question.metric)} ({inert(finding.definition) or 'no definition'}), {where}"
    for name, asked, seen, side in (
        ("before", question.before, finding.before, contrast.before),
        ("after", question.after, finding.after, contrast.after),
    ):
        mean = f"{side.mean:.4f}" if side.mean is not None else "-"
        yield f"{name:>6}  {_span(asked)}: {mean}, {side.n} scores (effective {side.effective:.0f}), {_span(seen)} seen"
    yield f"change  {contrast.change:+.4f} [{contrast.low:+.4f}, {contrast.high:+.4f}]"
    if finding.others:
        yield f"left out: scores of other definitions ({', '.join(map(inert, finding.others))})"
    if finding.repeated:
        yield f"left out: {finding.repeated} repeated records"
    yield f"explained by: {inert(conclusion(contrast))}"


def table(contrast: Contrast) -> Table:
    """All rows, by dimension; what explains something stands out."""
    made = Table(title="What moved", title_justify="left")
    made.add_column("label", no_wrap=True)
    for column in ("n before", "n after", "share before", "after", "mean before", "after"):
        made.add_column(column, justify="right", no_wrap=True)
    for column in ("part of the change", "explains [95 %]", "p (Holm)"):
        made.add_column(column, justify="right", no_wrap=True)
    made.add_column("", no_wrap=True)
    for part in contrast.parts:
        before, after = part.before, part.after
        mixed = part.kind is Kind.MIX
        made.add_row(
            Text(inert(subject(part))),
            *(["", ""] if mixed else [str(before.n), str(after.n)]),
            *(["", ""] if mixed else [share(before), share(after)]),
            *(["", ""] if mixed else [_mean(before), _mean(after)]),
            f"{part.part:+.4f}",
            with_interval(part),
            "" if part.adjusted is None else f"{part.adjusted:.3f}" if part.adjusted >= 0.001 else "<0.001",
            WORDS[part.verdict],
            style="bold" if part.verdict is Verdict.EXPLAINS else "",
        )
    return made


def as_json(finding: Finding) -> dict[str, Any]:
    """Everything, in plain types."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(finding))
    plain["conclusion"] = conclusion(finding.contrast)
    return plain


def _mean(side: Side) -> str:
    return "" if side.mean is None else f"{side.mean:.3f}"


def _span(span: Range) -> str:
    return f"{_time(span.begin)} to {_time(span.end)}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
