"""The dashboards as Grafana will read them: fresh, by its schema, without overlaps, over metrics that exist."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from consumer.settings import Settings
from deploy.grafana.boards import dashboards
from deploy.grafana.generate import FOLDER, files
from deploy.prometheus.rules import build
from deploy.prometheus.table import read_table

TABLE = read_table(Settings())
METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"
WRITTEN = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def test_the_committed_dashboards_are_what_the_script_makes() -> None:
    made = files(TABLE)
    assert set(WRITTEN) == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "python -m deploy.grafana.generate"


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_ids_are_unique_and_panels_do_not_overlap(name: str) -> None:
    panels = WRITTEN[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        x, y, width, height = (panel["gridPos"][key] for key in ("x", "y", "w", "h"))
        cells = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        assert x + width <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_segment_labels_and_the_data_source_are_variables() -> None:
    for name, dashboard in WRITTEN.items():
        variables = {variable["name"] for variable in dashboard["templating"]["list"]}
        assert "datasource" in variables
        if "operations" not in name:
            assert variables >= {*TABLE.segments, "window", "pages"}
        text = json.dumps(dashboard)
        used = set(re.findall(r"\$\{?([a-z]\w*)", text)) - {"labels"}
        assert used <= variables, f"{name} uses variables that it does not have: {used - variables}"
        assert '"uid": "${datasource}"' in text


def test_every_metric_of_a_query_exists() -> None:
    """In the docs of metrics, among the recording rules, or pending with the issue that brings it."""
    page = METRICS.read_text(encoding="utf-8")
    recorded = {rule.name for rule in build(TABLE)[0]}
    for dashboard in dashboards(TABLE):
        for title, query in dashboard.queries():
            for name in re.findall(r"groundwatch[_:][a-z0-9_:]+", query.expr):
                known = name in recorded or _documented(name, page)
                assert known or query.pending, f"{title}: {name}"


def _documented(name: str, page: str) -> bool:
    bare = name.removeprefix("groundwatch_")
    return any(f"`{form}`" in page for form in (bare, bare.removesuffix("_bucket"), bare.removesuffix("_count")))


def test_links_lead_to_the_addresses_of_the_pages() -> None:
    text = json.dumps(WRITTEN)
    links = set(re.findall(r"\$\{pages\}(/[a-z]*)", text))
    assert links == {"/cases"}
    for query in re.findall(r"\$\{pages\}/cases\?([^\"]*)", text):
        names = {part.split("=")[0] for part in query.split("&")}
        assert names <= {"segment", "flag", "fault", "from", "to"}, query


# --- Grafana's schema, as its own SDK has it ---

sdk = pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
MODULES = {"timeseries", "stat", "table", "bargauge", "heatmap"}


def fields(model: type) -> dict[str, Any]:
    """JSON name → type of every field of a class of the SDK; names by what its `to_json` writes."""
    hints = typing.get_type_hints(model, vars(importlib.import_module(model.__module__)))
    source = inspect.getsource(model.to_json)  # type: ignore[attr-defined]
    named = {attribute: key for key, attribute in re.findall(r'"(\w+)"(?:\]\s*=|\s*:)\s*self\.(\w+)', source)}
    return {named[attribute]: hint for attribute, hint in hints.items() if attribute in named}


def faults(value: Any, hint: Any, where: str) -> list[str]:
    """Where a value is not of the type that the schema names, or has a key that it does not know."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is object or hint is Any:
        return []
    if origin in (typing.Union, types.UnionType):
        found = [faults(value, one, where) for one in arguments]
        return [] if any(not one for one in found) else min(found, key=len)
    if origin is typing.Literal:
        return [] if value in arguments else [f"{where}: {value!r} is none of {arguments}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where}: {type(value).__name__}, expected a list"]
        return [fault for index, one in enumerate(value) for fault in faults(one, arguments[0], f"{where}[{index}]")]
    if origin is dict:
        return [] if isinstance(value, dict) else [f"{where}: expected an object"]
    if hint is type(None):
        return [] if value is None else [f"{where}: expected null"]
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return [] if value in {member.value for member in hint} else [f"{where}: {value!r} is no {hint.__name__}"]
    if inspect.isclass(hint) and hasattr(hint, "to_json"):
        if not isinstance(value, Mapping):
            return [f"{where}: expected an object"]
        known = fields(hint)
        unknown = [f"{where}.{key}: {hint.__name__} has no such key" for key in value.keys() - known.keys()]
        both = value.keys() & known.keys()
        return unknown + [fault for key in both for fault in faults(value[key], known[key], f"{where}.{key}")]
    if hint is float:
        return [] if isinstance(value, int | float) and not isinstance(value, bool) else [f"{where}: {value!r}"]
    if inspect.isclass(hint) and hint in (str, int, bool):
        good = isinstance(value, hint) and not (hint is int and isinstance(value, bool))
        return [] if good else [f"{where}: {value!r}, expected {hint.__name__}"]
    return []


def by_schema(dashboard: Mapping[str, Any]) -> list[str]:
    """The dashboard, each panel, its queries and what is special to its kind."""
    model = importlib.import_module("grafana_foundation_sdk.models.dashboard")
    prometheus = importlib.import_module("grafana_foundation_sdk.models.prometheus")
    apart = {key: value for key, value in dashboard.items() if key not in ("panels", "annotations")}
    found = faults(apart, model.Dashboard, "dashboard")
    for annotation in dashboard["annotations"]["list"]:
        # These are the data source's own, and the schema of an annotation leaves them open.
        own = {key: value for key, value in annotation.items() if key not in ("step", "titleFormat", "textFormat")}
        found += faults(own, model.AnnotationQuery, f"annotation {annotation['name']!r}")
    for panel in dashboard["panels"]:
        where = f"panel {panel['title']!r}"
        if panel["type"] == "row":
            found += faults(panel, model.RowPanel, where)
            continue
        found += faults({key: value for key, value in panel.items() if key != "targets"}, model.Panel, where)
        for target in panel["targets"]:
            found += faults(target, prometheus.Dataquery, f"{where} {target['refId']}")
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type']}")
        found += faults(panel["options"], kind.Options, f"{where} options")
        custom = panel["fieldConfig"]["defaults"].get("custom")
        if custom is not None:
            found += faults(custom, kind.FieldConfig, f"{where} custom")
    return found


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_dashboards_follow_grafanas_schema(name: str) -> None:
    assert {panel["type"] for panel in WRITTEN[name]["panels"]} <= MODULES | {"row"}
    assert by_schema(WRITTEN[name]) == []


def test_the_schema_finds_faults() -> None:
    name = "groundwatch-quality.json"
    for change in (
        {"titel": "x"},
        {"schemaVersion": "39"},
        {"time": {"from": 3, "to": "now"}},
        {"panels": [WRITTEN[name]["panels"][1] | {"gridPos": {"h": "8", "w": 12, "x": 0, "y": 0}}]},
        {"panels": [WRITTEN[name]["panels"][1] | {"options": {"legendary": True}}]},
    ):
        assert by_schema(WRITTEN[name] | change) != [], change
