"""What a value of the settings must be like where its type does not say it; each fault is a `ValueError`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

from consumer.judged_metrics import JUDGED
from metrics.ranges import SIMILARITIES, range_of

RESERVED_CONSUMER = frozenset({"enable.auto.commit", "enable.auto.offset.store", "group.id"})
"""Properties of the client that delivery guarantees rest on; settings must not change them."""
RESERVED_PRODUCER = frozenset({"acks", "request.required.acks", "enable.idempotence"})
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
METRICS = tuple(dict.fromkeys((*JUDGED, *SIMILARITIES)))
_REDIS = "must read redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH"


def refuse_reserved(names: Iterable[str], reserved: Collection[str], why: str) -> None:
    found = sorted(set(names) & set(reserved))
    if found:
        raise ValueError(f"{', '.join(found)} cannot be set: {why}; take it out")


def check_topics(named: Collection[tuple[str, str]]) -> None:
    """`named`: (role, topic) pairs. Brokers must be able to make every topic, and none may have two roles."""
    roles: dict[str, list[str]] = {}
    for role, name in named:
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise ValueError(f"{role}: {name!r} is no topic name: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
        roles.setdefault(name, []).append(role)
    if "events" not in (role for role, _ in named):
        raise ValueError("events is empty: name the topic that your answers are logged on")
    for name, its in roles.items():
        if len(its) > 1:
            raise ValueError(f"{name!r} is named more than once ({', '.join(its)}); give each role its own topic")


def check_redis_url(value: str) -> None:
    """An empty one is fine. A fault does not quote the value, which may hold a password."""
    if not value:
        return
    try:
        url = urlsplit(value)
        scheme, host, path, port = url.scheme, url.hostname, url.path, url.port
    except ValueError:
        raise ValueError(f"{_REDIS}: host or port cannot be read") from None
    if scheme == "unix" and path:
        return
    if scheme not in ("redis", "rediss"):
        raise ValueError(_REDIS)
    if not host or port == 0:
        raise ValueError(f"{_REDIS}: it names no {'port' if host else 'host'}")
    if not re.fullmatch(r"/?[0-9]*", path):
        raise ValueError(f"{_REDIS}: the database is a number")


def check_bootstrap(value: str) -> None:
    """A comma-separated list of `HOST:PORT`; an IPv6 address stands in brackets."""
    for server in value.split(","):
        host, _, port = server.strip().rpartition(":")
        sound = re.fullmatch(r"\[[0-9a-fA-F:.%a-z]+\]|[^\s:/\[\]]+", host) and re.fullmatch(r"[0-9]{1,5}", port)
        if not sound or not 0 < int(port) <= 65535:
            raise ValueError(f"{server.strip()!r} is not HOST:PORT (several are separated by commas)")


def check_metric_names(names: Collection[str]) -> None:
    for name in names:
        if name not in METRICS:
            near = difflib.get_close_matches(name, METRICS, n=1, cutoff=0.5)
            advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(METRICS)}"
            raise ValueError(f"no metric is called {name!r}; {advice}")
    if len(set(names)) != len(names):
        raise ValueError(f"a metric is named twice: {', '.join(names)}")


def check_thresholds(thresholds: Mapping[str, float]) -> None:
    """By metric: known names, values inside the metric's range."""
    check_metric_names(thresholds)
    for name, value in thresholds.items():
        bounds = range_of(name)
        if not bounds.holds(value):
            raise ValueError(f"{name} lies in [{bounds.low:g}, {bounds.high:g}], so its threshold cannot be {value:g}")


def segment_conditions(key: str) -> dict[str, str]:
    """`"app=hr-helpdesk,lang=zh"` as `{"app": "hr-helpdesk", "lang": "zh"}`.

    Raises:
        ValueError: not a list of `dimension=value`, or a dimension twice.
    """
    conditions: dict[str, str] = {}
    for part in key.split(","):
        name, _, value = (side.strip() for side in part.partition("="))
        if not name or not value:
            raise ValueError(f"{key!r} must read 'dimension=value' or 'dimension=value,dimension=value'")
        if name in conditions:
            raise ValueError(f"{key!r} names {name!r} twice")
        conditions[name] = value
    return conditions


def check_segment(where: str, key: str, allowed: Mapping[str, Collection[str]], what: str) -> None:
    """Can an event have the segment `key`? `where` stands before the fault; `what` is set for the segment."""
    for name, value in segment_conditions(key).items():
        known = allowed.get(name)
        if known is None:
            raise ValueError(f"{where}: no dimension {name!r} (there are: {', '.join(allowed) or 'none'})")
        if value not in (*known, "other"):
            raise ValueError(
                f"{where}: {value!r} is not in segments.allow.{name}, so every such event is 'other' and the {what} "
                "would never apply; add it there"
            )
