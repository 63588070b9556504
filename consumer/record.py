"""The score record (topic `qa.scores`): what the scorer writes and the monitor reads. It holds no text.

Times are seconds since the epoch (UTC). Unknown fields are ignored by readers; v and v - 1 are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """Where in Kafka an event was read."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.offset}"


@dataclass(frozen=True, slots=True)
class MetricScore:
    value: float
    probability: float
    """Inclusion probability of this metric for this event, in (0, 1]; its weight is 1 / probability."""


@dataclass(frozen=True, slots=True)
class MetricUnscored:
    reason: str
    probability: float


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    id: str
    content_hash: str
    event_time: float
    scored_time: float
    source: Position
    segment: Mapping[str, str]
    sampled_by: str
    """`rate` or `rule:NAME`."""
    probability: float
    scores: Mapping[str, MetricScore]
    unscored: Mapping[str, MetricUnscored]
    definitions: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    trace_id: str | None = None
    run: str = "live"
    statements: Mapping[str, int] = field(default_factory=dict)
    refusal: bool = False
    flags: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    fault: str = "unknown"
    sketch: Mapping[str, str] = field(default_factory=dict)
    cost: Mapping[str, int] = field(default_factory=dict)
    truncated: bool = False
    """A text was longer than the model's window and was embedded in parts."""
    v: int = VERSION


class RecordRejected(Exception):
    """A score record that must not be counted; `outcome` is `other_version` or `undecodable`."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome = outcome


def encode_record(record: ScoreRecord) -> bytes:
    """Strict JSON: a non-finite number never gets here (`metrics.outcome.bounded`), and orjson would write null."""
    return orjson.dumps(record)


def decode_record(raw: bytes | None) -> ScoreRecord:
    """Read a score record of version 1 (or older, were there any).

    Raises:
        RecordRejected: not a record, a value that is not finite, or a higher version.
    """
    if raw is None:
        raise RecordRejected("undecodable", "no value")
    try:
        data = orjson.loads(raw)
        version = data.get("v", VERSION)
        if not isinstance(version, int) or version > VERSION:
            raise RecordRejected("other_version", f"version {version!r}; this reader knows {VERSION}")
        return _record(data)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordRejected("undecodable", str(error)) from None


def _record(data: dict[str, Any]) -> ScoreRecord:
    source = data["source"]
    return ScoreRecord(
        id=_text(data["id"]),
        content_hash=_text(data["content_hash"]),
        event_time=_finite(data["event_time"]),
        scored_time=_finite(data["scored_time"]),
        source=Position(_text(source["topic"]), int(source["partition"]), int(source["offset"])),
        segment=data["segment"],
        sampled_by=data.get("sampled_by", "rate"),
        probability=_probability(data["probability"]),
        scores={n: MetricScore(_finite(s["value"]), _probability(s["probability"])) for n, s in data["scores"].items()},
        unscored={
            n: MetricUnscored(_text(u["reason"]), _probability(u["probability"])) for n, u in data["unscored"].items()
        },
        definitions=data["definitions"],
        versions=data.get("versions", {}),
        labels=data.get("labels", {}),
        trace_id=data.get("trace_id"),
        run=data.get("run", "live"),
        statements=data.get("statements", {}),
        refusal=bool(data.get("refusal", False)),
        flags=tuple(data.get("flags", ())),
        thresholds=data.get("thresholds", {}),
        fault=data.get("fault", "unknown"),
        sketch=data.get("sketch", {}),
        cost=data.get("cost", {}),
        truncated=bool(data.get("truncated", False)),
        v=data.get("v", VERSION),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"not finite: {value!r}")
    return number


def _probability(value: Any) -> float:
    number = _finite(value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"not a probability in (0, 1]: {value!r}")
    return number
