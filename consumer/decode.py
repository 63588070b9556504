"""Bytes to an event. Envelopes are taken off, the form is recognised by its keys, its mapping file reads the fields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from consumer import settings
from consumer.decoding.envelopes import Outer, take_off
from consumer.decoding.fields import Absent, Draft, read_fields
from consumer.decoding.json_bytes import Read, read_bytes, read_json
from consumer.decoding.mapping import Form, MappingError, View, folded, load_forms
from consumer.decoding.native import NATIVE, verbatim
from consumer.decoding.opened import opened
from consumer.decoding.otlp import nested_attributes
from consumer.decoding.reasons import DecodeError, Refusal, Repair
from consumer.decoding.scalars import EARLIEST, LATEST, quantised, read_id, read_time
from metrics.event import Event

__all__ = ["JUDGE_MARK", "DecodeError", "Decoded", "Decoder", "MappingError"]

JUDGE_MARK = "groundwatch-judge"
"""What our own judge calls carry as `user`; such a record on the watched topic is left out, not scored."""
_MARK_KEYS = frozenset({"user", "app", "app_name", "service", "service_name", "service.name", "source", "client",
                        "name", "safety_identifier", "groundwatch"})  # fmt: skip
_WRAPPERS = ("payload", "data", "body", "record", "message", "msg", "log", "event", "detail", "value", "after",
             "document", "json", "params", "attributes", "properties", "trace", "run", "item", "result", "response",
             "output", "outputs", "content", "request_response", "interaction", "turn", "row", "fields", "object",
             "extra", "metadata", "completion", "entry", "events", "items", "records", "rows", "conversationTurns",
             "turns", "samples")  # fmt: skip
_WRAPPER_DEPTH = 4
_MAX_WRAPPED = 30
"""Objects inside a record that are tried; a record made of wrappers must not hold up its partition."""
_AROUND = frozenset({"question", "query", "userinput", "userquery", "userquestion", "id", "eventid", "requestid",
                     "messageid", "timestamp", "createdat", "time", "traceid", "sessionid", "labels", "app", "model",
                     "reference", "groundtruth", "goldenanswers", "feedback"})  # fmt: skip
"""What a record inside a wrapper takes from the object around it."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An event and how it was read. `repairs` has one entry a repair, so a kind may stand in it more than once.
    `ignored`: the judge's own traffic, or a deleted row of a change-data stream; `event` then has no text."""

    event: Event
    form: str
    repairs: tuple[str, ...] = ()
    ignored: bool = False
    envelopes: tuple[str, ...] = ()
    schema_id: str | None = None
    """The id in a schema-registry header, where there was one."""


class Decoder:
    """Reads record values. Safe for use by several threads: nothing is kept between calls.

    Raises (on construction):
        MappingError: a mapping file that cannot be used, or `decode.form` names none.
    """

    def __init__(self, limits: settings.Decode, clock: Callable[[], float] = time.time) -> None:
        self._limits = limits
        self._clock = clock
        forms = load_forms(limits.forms_dir)
        if limits.form:
            chosen = tuple(form for form in forms if form.name == limits.form)
            if not chosen:
                names = ", ".join(sorted(form.name for form in forms))
                raise MappingError(f"decode.form: there is no form {limits.form!r}; there are {names}")
            forms = chosen
        self.forms = forms
        self._own_first = bool(forms) and limits.forms_dir is not None

    def decode(self, value: bytes, *, fallback_id: str, broker_time: float | None, key: bytes | None = None) -> Decoded:
        """Read one record value (a null value, a tombstone, is the caller's business).

        `fallback_id` is the event's id where it has none of its own; `broker_time` (seconds) is its time where it has
        none, or an absurd one. `key` never stops a value from being read.

        Raises:
            DecodeError: the record cannot be scored; nothing else is raised.
        """
        try:
            return self._decode(value, fallback_id, self._broker_time(broker_time))
        except RecursionError:
            raise DecodeError(Refusal.TOO_DEEP, "the record is nested too deep") from None
        except DecodeError:
            raise
        except Exception as error:
            # One bad event never stops a partition, not even by a fault of ours.
            raise DecodeError(
                Refusal.DECODER_FAULT, f"{type(error).__name__} while decoding; please report it"
            ) from error

    def _broker_time(self, broker_time: float | None) -> float | None:
        return broker_time if broker_time is not None and EARLIEST <= broker_time < LATEST else None

    def _decode(self, value: bytes, fallback_id: str, broker_time: float | None) -> Decoded:
        limits = self._limits
        read = read_bytes(value, max_bytes=limits.max_bytes, max_depth=limits.max_depth, gzip_allowed=limits.gzip)
        if JUDGE_MARK.encode() in value and _is_judges_own(read.document, 0):
            return self._ignored(fallback_id, broker_time, Outer(), read)
        if limits.form in ("", NATIVE) and not self._own_first and not read.conflicts:
            event = verbatim(read.document, limits.max_chunks)
            if event is not None:
                self._check_characters(event)
                return Decoded(event, NATIVE, tuple(read.repairs), schema_id=read.schema_id)
        for _ in range(3):
            if not isinstance(read.document, str):
                break
            if read.document.lstrip()[:1] not in ("{", '"', "["):
                break
            read.document = read_json(read.document.encode("utf-8", "replace"), limits.max_depth, read)
            read.repairs.append(Repair.DOUBLE_ENCODED)
        outer = Outer()
        document = take_off(
            read.document, read, outer,
            max_bytes=limits.max_bytes, max_depth=limits.max_depth, gzip_allowed=limits.gzip,
        )  # fmt: skip
        if outer.deleted:
            return self._ignored(fallback_id, broker_time, outer, read)
        if isinstance(document, list) and sum(isinstance(opened(item), dict) for item in document[:3]) > 1:
            raise DecodeError(Refusal.BATCH, f"{len(document)} records in one value; write one event a record")
        if not isinstance(document, dict):
            raise DecodeError(Refusal.NOT_AN_OBJECT, f"the value is {_kind(document)}; one JSON object is expected")
        if outer.names and _is_judges_own(document, 0):
            return self._ignored(fallback_id, broker_time, outer, read)
        form, draft, names = self._resolve(document)
        conflicts = read.conflicts & form.names
        if conflicts:
            raise DecodeError(
                Refusal.DUPLICATE_KEY,
                f"{', '.join(sorted(conflicts)[:5])} stands twice in one object with different values; "
                "which of them the user saw is not known",
            )
        event = self._event(draft, outer, fallback_id, broker_time)
        self._check_characters(event)
        return Decoded(
            event, form.name, tuple(read.repairs + draft.repairs),
            envelopes=(*outer.names, *names), schema_id=read.schema_id,
        )  # fmt: skip

    def _ignored(self, fallback_id: str, broker_time: float | None, outer: Outer, read: Read) -> Decoded:
        when = quantised(broker_time if broker_time is not None else self._clock())
        event = Event(fallback_id, when, None, (), None)
        return Decoded(
            event, "", tuple(read.repairs), ignored=True, envelopes=tuple(outer.names), schema_id=read.schema_id
        )

    def _resolve(self, document: dict[str, Any]) -> tuple[Form, Draft, tuple[str, ...]]:
        """The first form that finds contexts, answer and question; else the first that finds contexts and answer.

        Layers are tried from the outside in; the form that looks everywhere comes last.
        """
        first_error: DecodeError | None = None
        without_question: tuple[Form, Draft, tuple[str, ...]] | None = None
        for form, view, names in self._attempts(nested_attributes(document)):
            try:
                draft = read_fields(form, view, self._limits.max_chunks)
            except DecodeError as error:
                if error.reason in (Refusal.TOO_MANY_CHUNKS, Refusal.DUPLICATE_KEY):
                    raise
                first_error = _graver(first_error, error)
                continue
            if form.anywhere:
                draft.repairs.append(Repair.FOUND_BY_NAME)
            if draft.question or self._limits.form or form.order < 10:
                return form, draft, names
            without_question = without_question or (form, draft, names)
        if without_question is not None:
            return without_question
        if first_error is not None and not _found_too_little(first_error):
            raise DecodeError(Refusal(first_error.reason), first_error.detail)
        keys = ", ".join(str(key)[:60] for key in list(document)[:30])
        raise DecodeError(
            Refusal.UNRECOGNISED,
            f"no form fits a record with the keys {keys or '(none)'}. Write a mapping file (docs/events.md, 'A mapping "
            "file in a minute'), put it into decode.forms_dir and try it with: groundwatch decode FILE",
        )

    def _attempts(self, document: dict[str, Any]) -> Iterator[tuple[Form, View, tuple[str, ...]]]:
        view = View(document)
        near = [form for form in self.forms if not form.anywhere]
        if self._limits.form:
            for form in self.forms:
                yield form, view, ()
        else:
            yield from ((form, view, ()) for form in near if form.recognises(view))
        for name, inner in islice(_wrapped(view, document, 0), _MAX_WRAPPED):
            below = View(_with_what_is_around(document, inner))
            yield from ((form, below, (name,)) for form in near if form.recognises(below))
        if not self._limits.form:
            yield from ((form, view, ()) for form in self.forms if form.anywhere and form.recognises(view))

    def _event(self, draft: Draft, outer: Outer, fallback_id: str, broker_time: float | None) -> Event:
        when = draft.timestamp
        if when is None:
            when = next((t for raw in reversed(outer.times) if (t := read_time(raw, [])) is not None), None)
        if when is None and broker_time is None:
            draft.repairs.append(Repair.NO_TIME)
        if when is None:
            when = broker_time if broker_time is not None else self._clock()
        own_id = draft.id or next((i for raw in reversed(outer.ids) if (i := read_id(raw, []))), None)
        return Event(
            id=own_id or fallback_id,
            timestamp=quantised(when),
            question=draft.question,
            contexts=draft.contexts,
            answer=draft.answer,
            reference=draft.reference,
            trace_id=draft.trace_id,
            conversation=draft.conversation,
            labels=draft.labels,
            feedback=draft.feedback,
        )

    def _check_characters(self, event: Event) -> None:
        texts = (event.question, event.answer, event.reference)
        characters = (
            sum(len(text) for text in texts if text)
            + sum(len(chunk.text) for chunk in event.contexts)
            + sum(len(turn.content) for turn in event.conversation)
        )
        if characters > self._limits.max_characters:
            raise DecodeError(
                Refusal.TOO_MANY_CHARACTERS,
                f"{characters} characters; decode.max_characters allows {self._limits.max_characters}",
            )


def _graver(first: DecodeError | None, error: DecodeError) -> DecodeError:
    """The error to report: the first, unless a later form found more of the event."""
    if first is None:
        return error
    if isinstance(first, Absent) and (not isinstance(error, Absent) or len(error.found) > len(first.found)):
        return error
    return first


def _found_too_little(error: DecodeError) -> bool:
    return isinstance(error, Absent) and not (
        len(error.found) > 1 or "contexts" in error.found or error.reason.startswith("incomplete:")
    )


def _wrapped(view: View, document: dict[str, Any], depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects under names that people put around a record, the outer ones first."""
    below: list[tuple[str, dict[str, Any]]] = []
    for name in _WRAPPERS:
        inner = view.open(document.get(name))
        if isinstance(inner, list) and len(inner) == 1:
            inner = view.open(inner[0])
        if isinstance(inner, dict) and inner:
            below.append((name, inner))
    yield from below
    if depth < _WRAPPER_DEPTH:
        for name, inner in below:
            yield from ((f"{name}.{deeper}", found) for deeper, found in _wrapped(view, inner, depth + 1))


def _with_what_is_around(document: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """`inner` with the question, ids and times that stand beside it and that it has not itself."""
    around = {key: value for key, value in document.items() if folded(key) in _AROUND and not isinstance(value, dict)}
    return {**around, **inner} if around else inner


def _is_judges_own(node: Any, depth: int) -> bool:
    if depth > 12:
        return False
    if isinstance(node, dict):
        return any(
            (value == JUDGE_MARK and key in _MARK_KEYS)
            if isinstance(value, str) and value == JUDGE_MARK
            else _is_judges_own(value, depth + 1)
            for key, value in node.items()
        )
    if isinstance(node, list):
        return any(_is_judges_own(item, depth + 1) for item in node)
    if isinstance(node, str) and JUDGE_MARK in node:
        inner = opened(node)
        return isinstance(inner, (dict, list)) and _is_judges_own(inner, depth + 1)
    return False


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return {str: "a text", int: "a number", float: "a number", list: "a list"}.get(type(value), "no object")
