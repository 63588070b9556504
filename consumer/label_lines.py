"""Labels in a file, one JSON object a line: whole labels as `label export` writes them, or only an id and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from consumer.case_file import CaseFile
from consumer.inert_text import inert_json
from consumer.label import VERDICTS, Label, LabelChange, decode_label, encode_label, label_of
from consumer.record import RecordRejected

SHORT = frozenset(("id", "verdict", "by", "note", "labelled_time"))
"""What a line may hold that leaves the rest to the case file."""
TAKEN_AWAY = "none"


class CaseUnclear(Exception):
    """No one case can be told; one line that says why."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no label: its number (from 1), and why."""

    number: int
    reason: str


def label_line(label: Label) -> str:
    """The line of a label, without its end."""
    return inert_json(encode_label(label).decode())


def read_lines(
    lines: Iterable[bytes], find: Callable[[str], CaseFile], *, by: str, now: float
) -> Iterator[LabelChange | BadLine]:
    """What each line says; blank lines are passed over.

    `find` looks up the case of an id for a line that names no more than that, and raises `CaseUnclear`. `by` and `now`
    (seconds since the epoch) stand in where such a line does not say who labelled, and when.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _change(line, find, by, now)
        except orjson.JSONDecodeError as error:
            yield BadLine(number, f"no JSON: {error}")
        except RecordRejected as rejected:
            yield BadLine(number, f"no label, {rejected}")
        except (CaseUnclear, TypeError, ValueError) as error:
            yield BadLine(number, str(error))


def _change(line: bytes, find: Callable[[str], CaseFile], by: str, now: float) -> LabelChange:
    data = orjson.loads(line)
    if type(data) is not dict:
        raise TypeError(f"expected an object, found {type(data).__name__}")
    name, verdict = data.get("id"), data.get("verdict")
    if type(name) is not str or not name:
        raise ValueError("it has no id")
    if verdict == TAKEN_AWAY:
        return LabelChange(name, None)
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be good, bad or none, not {verdict!r}")
    if data.keys() - SHORT:
        label = decode_label(line)
        return LabelChange(label.id, label)
    case = find(name)
    label = label_of(
        case,
        verdict,
        by=_text(data, "by", by),
        note=_text(data, "note", ""),
        now=_number(data, "labelled_time", now),
    )
    return LabelChange(label.id, label)


def _text(data: dict[str, Any], key: str, absent: str) -> str:
    value = data.get(key, absent)
    if type(value) is not str:
        raise TypeError(f"{key} must be text")
    return value


def _number(data: dict[str, Any], key: str, absent: float) -> float:
    value = data.get(key, absent)
    if type(value) not in (int, float):
        raise TypeError(f"{key} must be a number (seconds since the epoch)")
    return float(value)
