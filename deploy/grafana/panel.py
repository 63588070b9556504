"""Parts of a dashboard as plain data, and their JSON. A test checks it by Grafana's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCHEMA_VERSION = 39
WIDTH = 24
Kind = Literal["timeseries", "stat", "table", "bargauge", "heatmap", "text"]


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query. `labels` are those that each series of its answer must have; `pending` names what
    must be there before it answers, where not everybody has it."""

    expr: str
    legend: str = ""
    labels: tuple[str, ...] = ()
    instant: bool = False
    exemplar: bool = False
    pending: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Panel:
    """`limits`: (value, colour) from which the colour holds, the first without a value. `bands`: legends of the lower
    and the upper end of an interval, which is filled."""

    title: str
    kind: Kind
    queries: tuple[Query, ...] = ()
    description: str = ""
    unit: str = "short"
    width: int = 12
    height: int = 8
    least: float | None = None
    most: float | None = None
    limits: tuple[tuple[float | None, str], ...] = ()
    bands: tuple[str, str] | None = None
    dashed: tuple[str, ...] = ()
    stacked: bool = False
    links: tuple[Link, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A template variable; `query` asks Prometheus for its values, else `values` are offered."""

    name: str
    label: str
    query: str = ""
    values: tuple[str, ...] = ()
    current: str = ""
    multi: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    name: str
    expr: str
    title: str
    text: str
    colour: str
    pending: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    uid: str
    title: str
    description: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...] = ()
    links: tuple[Link, ...] = ()
    refresh: str = "30s"
    span: str = "now-6h"

    def queries(self) -> list[tuple[str, Query]]:
        """(panel title, query) of all panels, and of the annotations."""
        own = [(panel.title, query) for _, panels in self.rows for panel in panels for query in panel.queries]
        marks = [(f"annotation {a.name}", Query(a.expr, pending=a.pending)) for a in self.annotations]
        return [*own, *marks]


def as_json(dashboard: Dashboard) -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in dashboard.rows:
        panels.append(_row(len(panels) + 1, title, top))
        top += 1
        left = height = 0
        for panel in row:
            if left + panel.width > WIDTH:
                top, left, height = top + height, 0, 0
            panels.append(_panel(len(panels) + 1, panel, left, top))
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["groundwatch"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA_VERSION,
        "refresh": dashboard.refresh,
        "time": {"from": dashboard.span, "to": "now"},
        "templating": {"list": [_variable(variable) for variable in dashboard.variables]},
        "annotations": {"list": [_annotation(annotation) for annotation in dashboard.annotations]},
        "links": [_dashboard_link(link) for link in dashboard.links],
        "panels": panels,
    }


def _row(number: int, title: str, top: int) -> dict[str, Any]:
    place = {"h": 1, "w": WIDTH, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(number: int, panel: Panel, left: int, top: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "gridPos": {"h": panel.height, "w": panel.width, "x": left, "y": top},
        "datasource": SOURCE,
        "targets": [_target(query, chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": _options(panel),
    }
    if panel.kind == "table":
        # Of an alert only what differs is worth a column.
        made["transformations"] = [
            {"id": "labelsToFields", "options": {"mode": "columns"}},
            {"id": "merge", "options": {}},
        ]
    return made


def _target(query: Query, name: str) -> dict[str, Any]:
    return {
        "refId": name,
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "instant": query.instant,
        "range": not query.instant,
        "exemplar": query.exemplar,
        "format": "table" if query.instant and not query.legend else "time_series",
        "editorMode": "code",
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    steps = [{"value": value, "color": colour} for value, colour in panel.limits or ((None, "blue"),)]
    made: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.least is not None:
        made["min"] = panel.least
    if panel.most is not None:
        made["max"] = panel.most
    if panel.links:
        made["links"] = [{"title": link.title, "url": link.url, "targetBlank": True} for link in panel.links]
    if panel.kind == "timeseries":
        made["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 0,
            "showPoints": "never",
            # A gap is a gap: no data is not the last value.
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "off"},
        }
    return made


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    def override(pattern: str, **properties: Any) -> dict[str, Any]:
        return {
            "matcher": {"id": "byRegexp", "options": pattern},
            "properties": [{"id": name.replace("__", "."), "value": value} for name, value in properties.items()],
        }

    made = []
    if panel.bands is not None:
        low, high = panel.bands
        made.append(override(f"/{low}/", custom__lineWidth=0))
        made.append(override(f"/{high}/", custom__lineWidth=0, custom__fillBelowTo=low, custom__fillOpacity=15))
    for name in panel.dashed:
        made.append(override(f"/{name}/", custom__lineStyle={"fill": "dash", "dash": [8, 8]}, custom__lineWidth=2))
    return made


def _options(panel: Panel) -> dict[str, Any]:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "text":
        return {"mode": "markdown", "content": panel.text}
    if panel.kind == "stat":
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
    if panel.kind == "bargauge":
        return {"reduceOptions": reduced, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True}
    if panel.kind == "table":
        return {"showHeader": True}
    if panel.kind == "heatmap":
        return {"calculate": False, "exemplars": {"color": "orange"}, "yAxis": {"unit": panel.unit}}
    return {
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _variable(variable: Variable) -> dict[str, Any]:
    made: dict[str, Any] = {"name": variable.name, "label": variable.label, "hide": 0}
    current = {"text": variable.current, "value": [variable.current] if variable.multi else variable.current}
    if variable.name == "datasource":
        return made | {"type": "datasource", "query": "prometheus", "regex": ""}
    made |= {"current": current, "multi": variable.multi, "includeAll": variable.multi}
    if variable.values:
        options = [{"text": v, "value": v, "selected": v == variable.current} for v in variable.values]
        kind = "textbox" if len(variable.values) == 1 else "custom"
        return made | {"type": kind, "query": ",".join(variable.values), "options": options}
    return made | {
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "allValue": ".*",
    }


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "name": annotation.name,
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": annotation.colour,
        "expr": annotation.expr,
        "titleFormat": annotation.title,
        "textFormat": annotation.text,
        "step": "60s",
    }


def _dashboard_link(link: Link) -> dict[str, Any]:
    return {
        "title": link.title, "type": "link", "url": link.url, "icon": "external link", "tooltip": "", "tags": [],
        "asDropdown": False, "targetBlank": False, "includeVars": True, "keepTime": True,
    }  # fmt: skip


def expanded(expr: str, variables: Mapping[str, str], interval: str) -> str:
    """The query as Grafana sends it, for tests."""
    for name, value in {"__rate_interval": interval, "__interval": interval, "__range": interval, **variables}.items():
        expr = expr.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return expr


def all_queries(dashboards: Sequence[Dashboard]) -> list[tuple[str, Query]]:
    return [(f"{d.title}: {title}", query) for d in dashboards for title, query in d.queries()]
