"""Label names of series for the segment keys of the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable

OWN = frozenset(
    (
        "definition", "dimension", "direction", "fault", "flag", "le", "metric", "outcome", "part", "quantile",
        "reason", "reference", "statistic", "verdict", "window",
        # What Prometheus puts on a series, and the rules on an alert.
        "alertname", "alertstate", "instance", "job", "service", "severity",
    )
)  # fmt: skip


def label_name(key: str) -> str:
    """A label name for a segment key; one that Prometheus forbids, or that has a meaning already, gets a prefix.

    >>> [label_name(key) for key in ("lang", "data-centre", "3rd", "metric", "severity")]
    ['lang', 'data_centre', 'segment_3rd', 'segment_metric', 'segment_severity']
    """
    name = re.sub(r"[^a-zA-Z0-9_]", "_", key)
    own = name in OWN or name.startswith("__") or not name or name[0].isdigit()
    return f"segment_{name}" if own else name


def same_names(keys: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of keys that would have one label name.

    >>> same_names(["app", "data-centre", "data_centre"])
    [('data-centre', 'data_centre')]
    """
    first: dict[str, str] = {}
    found = []
    for key in keys:
        name = label_name(key)
        if name in first:
            found.append((first[name], key))
        else:
            first[name] = key
    return found
