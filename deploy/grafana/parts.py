"""What the dashboards share: variables, annotations, links, and the panel of one score."""

from __future__ import annotations

from deploy.grafana.panel import Annotation, Link, Panel, Query, Variable
from deploy.prometheus.table import Table

JUDGED, BASELINES, LABELS = "an LLM judge", "a baseline, or two windows of answers", "50 labels of audited answers"
"""What a panel waits for."""
GREEN_RED = ((None, "green"), (1.0, "red"))


def selector(table: Table, *, every: bool = True) -> str:
    """The chosen segments. `every` False leaves `all` out, for counters and where segments are compared."""
    chosen = ",".join(f'{name}=~"${name}"' for name in table.segments)
    return chosen if every else f'{chosen},{table.segments[0]}!="all"'


def variables(table: Table, *, segments: bool = True) -> tuple[Variable, ...]:
    source = Variable("datasource", "Data source")
    pages = Variable("pages", "Pages", values=(table.links.pages,), current=table.links.pages)
    if not segments:
        return (source,)
    windows = tuple(table.settings.monitor.windows)
    return (
        source,
        *(
            Variable(name, name, query=f"label_values(groundwatch_rolling_samples, {name})", current="all", multi=True)
            for name in table.segments
        ),
        Variable("window", "Window", values=windows, current="1h" if "1h" in windows else windows[0]),
        pages,
    )


def dashboard_links() -> tuple[Link, ...]:
    return tuple(
        Link(title, f"/d/groundwatch-{uid}")
        for title, uid in (("Quality", "quality"), ("On-call", "oncall"), ("Operations", "operations"))
    )


def changes(table: Table) -> tuple[Annotation, ...]:
    by = ", ".join(("dimension", *table.segments))
    named = " / ".join(f"{{{{{name}}}}}" for name in table.segments)
    return (
        Annotation(
            "model or knowledge base",
            f"sum by ({by}) (increase(groundwatch_dimension_changes_total[2m])) > 0",
            "new {{dimension}}",
            named,
            "purple",
        ),
        Annotation(
            "change of a score",
            f"sum by (metric, {', '.join(table.segments)}) (increase(groundwatch_changes_total[2m])) > 0",
            "{{metric}} changed",
            named,
            "orange",
        ),
    )


def score(table: Table, metric: str, title: str, description: str, pending: str = "") -> Panel:
    """A rolling score with its interval, and the threshold in force."""
    chosen = f'metric="{metric}",window="$window",{selector(table)}'
    labels = ("metric", "window", *table.segments)
    named = " / ".join(f"{{{{{name}}}}}" for name in table.segments)
    return Panel(
        title,
        "timeseries",
        (
            Query(f"groundwatch:rolling_score:newest{{{chosen}}}", named, labels, pending=pending),
            Query(f"groundwatch:rolling_score_low:newest{{{chosen}}}", f"low {named}", labels, pending=pending),
            Query(f"groundwatch:rolling_score_high:newest{{{chosen}}}", f"high {named}", labels, pending=pending),
            Query(
                f'groundwatch:threshold:in_force{{metric="{metric}",{selector(table)}}}',
                f"threshold {named}",
                ("metric", *table.segments),
                pending=pending,
            ),
        ),
        description,
        unit="percentunit" if not metric.endswith("_similarity") else "short",
        bands=("low", "high"),
        dashed=("threshold",),
        links=(Link("Cases of this time", cases(table, "")),),
    )


def cases(table: Table, more: str) -> str:
    segment = "%2C".join(f"{name}%3D${{__field.labels.{name}}}" for name in table.segments)
    return f"${{pages}}/cases?segment={segment}{more}&from=${{__from:date:iso}}&to=${{__to:date:iso}}"
