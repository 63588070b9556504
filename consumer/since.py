"""A point in time as a person gives it on the command line, `2h` ago or a date, and as it is told to a person."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import click

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def moment(text: str, now: float) -> float:
    """`90s`, `30m`, `2h`, `7d` before `now`, or an ISO 8601 date or time (UTC where it names no zone).

    Returns seconds since the epoch.

    Raises:
        ValueError: neither.

    >>> moment("2h", 10_000.0)
    2800.0
    >>> moment("1970-01-01T00:01", 0.0)
    60.0
    """
    span = _SPAN.fullmatch(text.strip())
    if span:
        return now - float(span[1]) * SECONDS[span[2]]
    when = datetime.fromisoformat(text.strip())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def seconds_of(text: str) -> float:
    """How long `90s`, `30m`, `2h` or `7d` is.

    Raises:
        ValueError: none of these.

    >>> seconds_of("1.5h")
    5400.0
    """
    span = _SPAN.fullmatch(text.strip())
    if span is None:
        raise ValueError(f"{text!r} is no length of time; write 30m, 2h or 7d")
    return float(span[1]) * SECONDS[span[2]]


def utc(seconds: float) -> str:
    """`2026-11-29 10:00:00 UTC`; an absurd time is shown as a number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


class Since(click.ParamType):
    """A click parameter type around `moment`."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return moment(str(value), time.time())
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; write 30m, 2h, 7d or 2026-11-29T10:00Z", param, ctx)
