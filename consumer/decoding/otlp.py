"""OpenTelemetry's attribute shapes as plain nested objects.

Attributes are logged as `[{"key": "input.value", "value": {"stringValue": "..."}}]`, as `{"input.value": "..."}` and
with numbered keys (`retrieval.documents.0.document.content`); a mapping file sees one nested object in all three cases.
"""

from __future__ import annotations

import re
from typing import Any

_VALUES = (
    "stringValue",
    "intValue",
    "doubleValue",
    "boolValue",
    "string_value",
    "int_value",
    "double_value",
    "bool_value",
)
_NUMBERED = re.compile(r"((?:retrieved_?)?(?:context|passage|document|doc|chunk))[_-]?(\d{1,3})", re.IGNORECASE)
_MAX_DEPTH = 8
_MAX_INDEX = 10_000


def nested_attributes(document: dict[str, Any]) -> dict[str, Any]:
    """`document` with dotted keys and attribute lists nested; the very same object where there are none."""
    document = _unwrapped_spans(document)
    changed = _nested(document, 0, top=True)
    return _numbered(changed if isinstance(changed, dict) else document)


def _numbered(document: dict[str, Any]) -> dict[str, Any]:
    """Passages in fields of their own (`context_1`, `context_2`) as one list (`contexts`) beside them."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for key, value in document.items():
        match = _NUMBERED.fullmatch(key)
        if match and isinstance(value, (str, dict)) and value:
            found.setdefault(match.group(1).lower() + "s", []).append((int(match.group(2)), value))
    lists = {name: [v for _, v in sorted(items, key=lambda item: item[0])] for name, items in found.items()}
    return {**lists, **document} if lists else document


def _unwrapped_spans(document: dict[str, Any]) -> dict[str, Any]:
    """OTLP's three levels of lists as one list of spans (or log records)."""
    for outer, middle, inner in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"),
                                 ("resource_spans", "scope_spans", "spans")):  # fmt: skip
        groups = document.get(outer)
        if isinstance(groups, list):
            spans = [
                span
                for group in groups
                if isinstance(group, dict)
                for scope in _dicts(group.get(middle))
                for span in _dicts(scope.get(inner))
            ]
            first = groups[0] if groups and isinstance(groups[0], dict) else {}
            if len(spans) == 1:
                return {**spans[0], "resource": first.get("resource")}
            return {"spans": spans, "resource": first.get("resource")}
    return document


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _nested(node: Any, depth: int, top: bool = False) -> Any:
    if depth > _MAX_DEPTH:
        return node
    if isinstance(node, list):
        if node and all(isinstance(item, dict) and "key" in item and "value" in item for item in node):
            return _nested({str(item["key"]): _plain(item["value"]) for item in node}, depth, top=True)
        if not any(isinstance(item, (dict, list)) for item in node):
            return node
        return [_nested(item, depth + 1, top) for item in node]
    if not isinstance(node, dict):
        return node
    result = {
        key: _nested(value, depth + 1, top=key == "attributes" or (top and depth > 0)) for key, value in node.items()
    }
    dotted = [key for key in node if ("." in key or "/" in key) and " " not in key and ":" not in key] if top else []
    tree: dict[str, Any] = {}
    for key in dotted:
        _place(tree, key.replace("/", ".").strip(".").split("."), result[key])
    for key, value in tree.items():
        plain = _listed(value)
        if key not in result:
            result[key] = plain
        elif isinstance(result[key], dict) and isinstance(plain, dict):
            result[key] = {**plain, **result[key]}
    return result


def _plain(value: Any) -> Any:
    """An OTLP AnyValue as a plain value."""
    if not isinstance(value, dict):
        return value
    for name in _VALUES:
        if name in value:
            return value[name]
    inner = value.get("arrayValue", value.get("array_value"))
    if isinstance(inner, dict):
        values = inner.get("values", [])
        return [_plain(item) for item in values] if isinstance(values, list) else []
    inner = value.get("kvlistValue", value.get("kvlist_value"))
    if isinstance(inner, dict):
        return {str(pair["key"]): _plain(pair.get("value")) for pair in _dicts(inner.get("values")) if "key" in pair}
    return value


def _place(tree: dict[str, Any], steps: list[str], value: Any) -> None:
    node = tree
    for step in steps[:-1]:
        inner = node.setdefault(step, {})
        if not isinstance(inner, dict):
            # Both `a` and `a.b` are there: the longer names keep the place, `a` stays under its own full key.
            inner = node[step] = {}
        node = inner
    if not isinstance(node.get(steps[-1]), dict):
        node[steps[-1]] = value


def _listed(node: Any) -> Any:
    """Objects whose keys are 0, 1, 2, ... as lists."""
    if not isinstance(node, dict):
        return node
    if node and all(key.isdigit() and len(key) < 5 for key in node) and max(map(int, node)) < _MAX_INDEX:
        return [_listed(node[key]) for key in sorted(node, key=int)]
    return {key: _listed(value) for key, value in node.items()}
