"""Changes that were found, kept beside the case files: a monitor that starts anew, or takes over, knows them.

Detectors look at live scores only, so what was found before cannot be found again. What explains a change is not kept:
it is looked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import orjson

from consumer.case_store import CaseStore, CaseStoreError
from consumer.scorebook import Scorebook
from metrics.changes import Change
from metrics.detector import Case, Shift

log = logging.getLogger(__name__)


class ChangeMemory:
    """`attend` blocks while Redis is asked: call it in a thread, from one only."""

    def __init__(self, store: CaseStore, book: Scorebook) -> None:
        self._store = store
        self._book = book
        self._kept: bytes | None = None
        self._away = False

    def attend(self) -> None:
        """Tell the book what another monitor has kept, then keep what the book has found. Call every few seconds."""
        try:
            kept = self._store.kept_changes()
            if kept != self._kept:
                self._book.recall(decode_changes(kept))
                self._kept = kept
            found = self._book.changes()
            if found and (changes := encode_changes(found)) != self._kept:
                self._store.keep_changes(changes)
                self._kept = changes
            self._away = False
        except CaseStoreError as error:
            if not self._away:
                log.warning("changes of level are not kept over a restart yet: %s", error)
            self._away = True


def encode_changes(changes: Iterable[Change]) -> bytes:
    """JSON, without what explains them."""
    return orjson.dumps(
        [
            {"segment": c.segment, "metric": c.metric, "definition": c.definition, "shift": _shift(c.shift)}
            for c in changes
        ]
    )


def decode_changes(raw: bytes | None) -> list[Change]:
    """None where there is nothing, or nothing that can be read: a change is not worth a monitor that does not start."""
    if raw is None:
        return []
    try:
        return [_change(data) for data in orjson.loads(raw)]
    except (KeyError, TypeError, ValueError) as error:
        log.warning("the changes that were kept cannot be read: %r", error)
        return []


def _shift(shift: Shift) -> dict[str, object]:
    return {
        "start": shift.start,
        "found": shift.found,
        "before": shift.before,
        "after": shift.after,
        "samples": shift.samples,
        "cases": [case._asdict() for case in shift.cases],
    }


def _change(data: dict[str, object]) -> Change:
    return Change(
        tuple(str(value) for value in _list(data["segment"])),
        str(data["metric"]),
        str(data["definition"]),
        _read_shift(_dict(data["shift"])),
    )


def _read_shift(data: dict[str, object]) -> Shift:
    return Shift(
        _number(data["start"]),
        _number(data["found"]),
        _number(data["before"]),
        _number(data["after"]),
        int(_number(data["samples"])),
        tuple(_case(_dict(case)) for case in _list(data["cases"])),
    )


def _case(data: dict[str, object]) -> Case:
    trace = data["trace_id"]
    return Case(
        _number(data["part"]),
        str(data["id"]),
        None if trace is None else str(trace),
        _number(data["value"]),
        _number(data["at"]),
    )


def _number(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, found {type(value).__name__}")
    return float(value)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def _dict(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value
