"""The score record (topic `qa.scores`): what the scorer writes and the monitor reads. It holds no text.

Times are seconds since the epoch (UTC). Unknown fields are ignored by readers; v and v - 1 are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import orjson

VERSION = 1

R = TypeVar("R")
_NONE: dict[str, Any] = {}


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
    conflicts: int = 0
    """Statements that one passage supports and another contradicts."""
    evasive: bool = False
    """The answer avoids the question, as an LLM judge sees it."""
    v: int = VERSION


class Value(NamedTuple):
    """A metric's value and its inclusion probability, as `MetricScore`, but several times cheaper to make."""

    value: float
    probability: float


@dataclass(slots=True)
class CountedRecord:
    """The part of a score record that windows and counters take. The monitor reads millions of records back at a start:
    this is half the cost of a `ScoreRecord`, and therefore not frozen either.
    """

    id: str
    content_hash: str
    event_time: float
    run: str
    segment: Mapping[str, str]
    probability: float
    scores: Mapping[str, Value]
    unscored: Mapping[str, MetricUnscored]
    definitions: Mapping[str, str]
    versions: Mapping[str, str]
    labels: Mapping[str, str]
    trace_id: str | None
    statements: Mapping[str, int]
    refusal: bool
    flags: tuple[str, ...]
    fault: str
    sketch: Mapping[str, str]
    """Not checked: who decodes a sketch finds out."""
    conflicts: int = 0
    evasive: bool = False
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """As they stand in the record: looked at only where they are shown."""


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
    return _decoded(raw, _record)


def decode_counted(raw: bytes | None) -> CountedRecord:
    """Read what the monitor counts, with the same checks as `decode_record`.

    Raises:
        RecordRejected: not a record, a value that is not finite, or a higher version.
    """
    return _decoded(raw, _counted)


def _decoded(raw: bytes | None, read: Callable[[dict[str, Any]], R]) -> R:
    if raw is None:
        raise RecordRejected("undecodable", "no value")
    try:
        data = orjson.loads(raw)
        version = data.get("v", VERSION)
        if type(version) is not int or version > VERSION:
            raise RecordRejected("other_version", f"version {version!r}; this reader knows {VERSION}")
        return read(data)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordRejected("undecodable", str(error)) from None


def _counted(data: dict[str, Any]) -> CountedRecord:
    get = data.get
    trace_id = get("trace_id")
    unscored = data["unscored"]
    flags = get("flags")
    statements = get("statements")
    return CountedRecord(
        _text(data["id"]),
        _text(data["content_hash"]),
        _number(data["event_time"]),
        _text(get("run", "live")),
        _texts(data["segment"]),
        _probability(data["probability"]),
        {name: _value(score["value"], score["probability"]) for name, score in data["scores"].items()},
        _unscored(unscored) if unscored else {},
        _texts(data["definitions"]),
        _texts(get("versions", _NONE)),
        _texts(get("labels", _NONE)),
        trace_id if trace_id is None else _text(trace_id),
        _counts(statements) if statements else {},
        get("refusal") is True,
        tuple([_text(flag) for flag in flags]) if flags else (),
        _text(get("fault", "unknown")),
        sketch if type(sketch := get("sketch")) is dict else _NONE,
        _whole(get("conflicts", 0)),
        get("evasive") is True,
        get("thresholds", _NONE),
    )


def _value(value: Any, probability: Any) -> Value:
    if type(value) is float and type(probability) is float and 0.0 < probability <= 1.0:
        return Value(value, probability)
    return Value(_number(value), _probability(probability))


def _unscored(data: dict[str, Any]) -> dict[str, MetricUnscored]:
    return {n: MetricUnscored(_text(u["reason"]), _probability(u["probability"])) for n, u in data.items()}


def _record(data: dict[str, Any]) -> ScoreRecord:
    source = data["source"]
    return ScoreRecord(
        id=_text(data["id"]),
        content_hash=_text(data["content_hash"]),
        event_time=_number(data["event_time"]),
        scored_time=_number(data["scored_time"]),
        source=Position(_text(source["topic"]), int(source["partition"]), int(source["offset"])),
        segment=_texts(data["segment"]),
        sampled_by=data.get("sampled_by", "rate"),
        probability=_probability(data["probability"]),
        scores={n: MetricScore(_number(s["value"]), _probability(s["probability"])) for n, s in data["scores"].items()},
        unscored=_unscored(data["unscored"]),
        definitions=_texts(data["definitions"]),
        versions=_texts(data.get("versions", {})),
        labels=_texts(data.get("labels", {})),
        trace_id=data.get("trace_id"),
        run=data.get("run", "live"),
        statements=_counts(data.get("statements", {})),
        refusal=bool(data.get("refusal", False)),
        flags=tuple(data.get("flags", ())),
        thresholds=data.get("thresholds", {}),
        fault=data.get("fault", "unknown"),
        sketch=data.get("sketch", {}),
        cost=data.get("cost", {}),
        truncated=bool(data.get("truncated", False)),
        conflicts=_whole(data.get("conflicts", 0)),
        evasive=data.get("evasive") is True,
        v=data.get("v", VERSION),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _texts(value: Any) -> Mapping[str, str]:
    if type(value) is not dict:
        raise TypeError(f"expected an object, found {type(value).__name__}")
    for entry in value.values():
        if type(entry) is not str:
            raise TypeError(f"expected text, found {type(entry).__name__}")
    return value


def _counts(value: Any) -> Mapping[str, int]:
    if type(value) is not dict:
        raise TypeError(f"expected an object, found {type(value).__name__}")
    for entry in value.values():
        _whole(entry)
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a count: {value!r}")
    return value


def _number(value: Any) -> float:
    """A finite number. A parsed float always is one: orjson refuses NaN, Infinity and 1e400."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise TypeError(f"expected a number, found {type(value).__name__}")
    return float(value)


def _probability(value: Any) -> float:
    number = _number(value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"not a probability in (0, 1]: {value!r}")
    return number
