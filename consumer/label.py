"""A person's label of one answer (topic `qa.labels`): good or bad, and what was known of its case at that time.

What was known travels along, so that a reader can correct the live number without asking anybody for the case.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from consumer.case_file import CaseFile
from consumer.record import MetricScore, RecordRejected
from metrics.ranges import range_of

VERSION = 1
Verdict = Literal["good", "bad"]
VERDICTS: tuple[Verdict, ...] = ("good", "bad")

NOTE_CHARACTERS = 1000
BY_CHARACTERS = 100
ID_CHARACTERS = 10_000
MAX_SCORES = 32
_KEPT = frozenset("\u200c\u200d")
"""Joiners that scripts and emoji need."""


@dataclass(frozen=True, slots=True)
class Label:
    """One label. Times are seconds since the epoch; `probability` is the event's inclusion probability, that of each
    metric is in `scores`. Only where `why` holds `audit` is there an `audit_probability`, and only such a label can
    correct the live number: flagged answers are a biased sample.
    """

    id: str
    content_hash: str
    verdict: Verdict
    by: str
    labelled_time: float
    event_time: float
    segment: Mapping[str, str]
    why: tuple[str, ...]
    audit_probability: float | None
    probability: float
    scores: Mapping[str, MetricScore]
    definitions: Mapping[str, str]
    note: str = ""
    flags: tuple[str, ...] = ()
    run: str = "live"
    v: int = VERSION


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What becomes of the label of event `id`; `label` None: it has none any more."""

    id: str
    label: Label | None


def label_of(case: CaseFile, verdict: Verdict, *, by: str, note: str, now: float) -> Label:
    """The label that a person gives `case`.

    Raises:
        ValueError: name or note is too long, or there is no name, or the case is no one that a label could be read of.
    """
    record = case.record
    scores = {name: score for name, score in record.scores.items() if range_of(name).holds(score.value)}
    label = Label(
        id=record.id,
        content_hash=record.content_hash,
        verdict=verdict,
        by=checked_by(by),
        labelled_time=now,
        event_time=record.event_time,
        segment=record.segment,
        why=case.why,
        audit_probability=case.audit_probability if "audit" in case.why else None,
        probability=record.probability,
        scores=scores,
        definitions={name: d for name, d in record.definitions.items() if name in scores},
        note=checked_note(note),
        flags=record.flags,
        run=record.run,
    )
    try:
        decode_label(encode_label(label))  # case files of a foreign writer may hold anything
    except RecordRejected as rejected:
        raise ValueError(f"this case cannot be labelled: {rejected}") from None
    return label


def checked_by(by: str) -> str:
    """The name without control characters, on one line.

    Raises:
        ValueError: it is empty, or too long.
    """
    return _limited(_plain(by), BY_CHARACTERS, "who labels (by)", least=1)


def checked_note(note: str) -> str:
    """The note without control characters, on one line.

    Raises:
        ValueError: it is too long.
    """
    return _limited(_plain(note), NOTE_CHARACTERS, "the note")


def encode_label(label: Label) -> bytes:
    return orjson.dumps(label)


def decode_label(raw: bytes) -> Label:
    """Read a label.

    Raises:
        RecordRejected: not a label, something in it beyond its limits, or a higher version.
    """
    try:
        data = orjson.loads(raw)
        if type(data) is not dict:
            raise TypeError(f"expected an object, found {type(data).__name__}")
        version = data.get("v", VERSION)
        if type(version) is not int or version > VERSION:
            raise RecordRejected("other_version", f"version {version!r}; this reader knows {VERSION}")
        return _label(data)
    except KeyError as error:
        raise RecordRejected("undecodable", f"it has no {error.args[0]!r}") from None
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
        raise RecordRejected("undecodable", str(error)) from None


def record_key(event_id: str) -> bytes:
    """The record key of an event's label."""
    return event_id.encode("utf-8", "replace")


def change_of(key: bytes | None, value: bytes | None) -> LabelChange:
    """What a record on the topic says.

    Raises:
        RecordRejected: not a label of the event that its key names, or a higher version.
    """
    if not key:
        raise RecordRejected("undecodable", "no key")
    event_id = key.decode("utf-8", "replace")
    if value is None:
        return LabelChange(event_id, None)
    label = decode_label(value)
    if record_key(label.id) != key:
        raise RecordRejected("undecodable", f"its key names another event than {label.id[:100]!r}")
    return LabelChange(label.id, label)


def _label(data: dict[str, Any]) -> Label:
    verdict = data["verdict"]
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be good or bad, not {verdict!r}")
    why = tuple(_text("why", entry, 40) for entry in _list("why", data["why"]))
    audit_probability = data.get("audit_probability")
    if ("audit" in why) != (audit_probability is not None):
        raise ValueError("audit_probability belongs to an audited case (why), and only to one")
    scores = {
        _text("metric", name, 60): _score(name, score) for name, score in _object("scores", data["scores"]).items()
    }
    if len(scores) > MAX_SCORES:
        raise ValueError(f"{len(scores)} scores; at most {MAX_SCORES}")
    return Label(
        id=_text("id", data["id"], ID_CHARACTERS, least=1),
        content_hash=_text("content_hash", data["content_hash"], 200),
        verdict=verdict,
        by=checked_by(_text("by", data["by"], ID_CHARACTERS)),
        labelled_time=_number("labelled_time", data["labelled_time"]),
        event_time=_number("event_time", data["event_time"]),
        segment=_texts("segment", data["segment"]),
        why=why,
        audit_probability=None if audit_probability is None else _share("audit_probability", audit_probability),
        probability=_share("probability", data["probability"]),
        scores=scores,
        definitions=_texts("definitions", data["definitions"]),
        note=checked_note(_text("note", data.get("note", ""), ID_CHARACTERS)),
        flags=tuple(_text("flags", flag, 60) for flag in _list("flags", data.get("flags", []))),
        run=_text("run", data.get("run", "live"), 200),
    )


def _score(name: str, data: Any) -> MetricScore:
    score = _object(f"scores.{name}", data)
    value, range_ = _number(f"scores.{name}.value", score["value"]), range_of(name)
    if not range_.holds(value):
        raise ValueError(f"scores.{name}.value must lie in [{range_.low:g}, {range_.high:g}], not {value:g}")
    return MetricScore(value, _share(f"scores.{name}.probability", score["probability"]))


def _plain(text: str) -> str:
    """On one line, without control characters, lone surrogates and marks that turn the reading direction around."""
    kept = (c if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else " " for c in text)
    return " ".join("".join(kept).split())


def _limited(text: str, most: int, what: str, least: int = 0) -> str:
    if len(text) > most:
        raise ValueError(f"{what} has {len(text):,} characters; at most {most:,}")
    if len(text) < least:
        raise ValueError(f"{what} is empty")
    return text


def _text(name: str, value: Any, most: int, least: int = 0) -> str:
    if type(value) is not str:
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
    return _limited(value, most, name, least)


def _object(name: str, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise TypeError(f"{name} must be an object, not {type(value).__name__}")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if type(value) is not list or len(value) > 100:
        raise TypeError(f"{name} must be a list of at most 100")
    return value


def _texts(name: str, value: Any) -> Mapping[str, str]:
    return {_text(name, key, 200): _text(f"{name}.{key}", text, 1000) for key, text in _object(name, value).items()}


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def _share(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], not {number:g}")
    return number
