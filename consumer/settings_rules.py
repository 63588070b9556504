"""What a value of the settings must be like where its type does not say it; each fault is a `ValueError`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

RESERVED_CONSUMER = frozenset({"enable.auto.commit", "enable.auto.offset.store", "group.id"})
"""Properties of the client that delivery guarantees rest on; settings must not change them."""
RESERVED_PRODUCER = frozenset({"acks", "request.required.acks", "enable.idempotence"})
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
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
