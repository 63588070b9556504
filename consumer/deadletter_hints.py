"""What to do about a dead letter, one line a reason; docs/events.md has the longer table."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from consumer.decoding.reasons import INTERNAL_ERROR, Refusal
from consumer.logs import one_line

_MAP = "look at one (--show 1) with `groundwatch decode`, write a mapping file into decode.forms_dir"
_THEN = "restart the scorer, then redrive"
_LIMIT = "raise it (GROUNDWATCH__DECODE__{}) if such events are real, {}; else log less"

NO_FIX = frozenset(
    (
        Refusal.EMPTY,
        Refusal.BAD_ENCODING,
        Refusal.CORRUPT_GZIP,
        Refusal.NOT_JSON,
        Refusal.NOT_AN_OBJECT,
        Refusal.BATCH,
        Refusal.DUPLICATE_KEY,
    )
)
"""Reasons that lie in the bytes themselves: nothing done on our side makes such a record readable."""
_LEFT = "redrive leaves these, as no fix helps them, unless --reason names them"

_HINTS: dict[str, str] = {
    Refusal.EMPTY: f"the producer writes blank records; {_LEFT}",
    Refusal.TOO_LARGE: "beyond decode.max_bytes: " + _LIMIT.format("MAX_BYTES", _THEN),
    Refusal.TOO_DEEP: "beyond decode.max_depth: " + _LIMIT.format("MAX_DEPTH", _THEN),
    Refusal.TOO_MANY_CHUNKS: "beyond decode.max_chunks: " + _LIMIT.format("MAX_CHUNKS", _THEN),
    Refusal.TOO_MANY_CHARACTERS: "beyond decode.max_characters: " + _LIMIT.format("MAX_CHARACTERS", _THEN),
    Refusal.BAD_ENCODING: f"let the producer write UTF-8; {_LEFT}",
    Refusal.UNSUPPORTED_FORMAT: "log JSON; if it is gzip, set decode.gzip = true, " + _THEN,
    Refusal.CORRUPT_GZIP: f"the value is cut off or damaged: let Kafka's own client compress; {_LEFT}",
    Refusal.NOT_JSON: f"let the producer write one JSON object a record; {_LEFT}",
    Refusal.NOT_AN_OBJECT: f"let the producer write one JSON object a record; {_LEFT}",
    Refusal.BATCH: f"let the producer write one event a record; {_LEFT}",
    Refusal.DUPLICATE_KEY: f"a key stands twice with different values: fix the producer; {_LEFT}",
    Refusal.UNRECOGNISED: f"no form fits: {_MAP}, {_THEN}",
    Refusal.MISSING_CONTEXTS: f"a field was renamed or is no longer logged: {_MAP}, {_THEN}",
    Refusal.MISSING_ANSWER: f"a field was renamed or is no longer logged: {_MAP}, {_THEN}",
    Refusal.INCOMPLETE_CONTEXTS: "one record of a trace: log question, contexts and answer in one record",
    Refusal.INCOMPLETE_ANSWER: "one record of a trace: log question, contexts and answer in one record",
    Refusal.BAD_CONTEXT_SHAPE: f"contexts hold no passages where the form looks: {_MAP}, {_THEN}",
    Refusal.BAD_ANSWER_SHAPE: f"no text where the form looks for the answer: {_MAP}, {_THEN}",
    Refusal.DECODER_FAULT: f"a fault of Groundwatch: report it with the record's shape; after the upgrade, {_THEN}",
    Refusal.REDACTION_TIMEOUT: f"a pattern of redaction.patterns took too long: make it simpler, {_THEN}",
    INTERNAL_ERROR: f"a fault of Groundwatch: the scorer's log says which; after the upgrade, {_THEN}",
    "": "not written by the scorer: who else writes to this topic?",
}
_NEWER = "not known to this version: see docs/events.md of the version that wrote it"


def hint_of(reason: str) -> str:
    """What to do, in one line; never empty."""
    return _HINTS.get(reason, _NEWER)


def missing_reasons(wanted: Collection[str], there: Mapping[str, int], topic: str) -> list[str]:
    """A line for each reason of `wanted` that no letter has, with those that there are (how many letters by reason)."""
    most_first = sorted(there.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{one_line(reason) or '(none)'} ({count:,})" for reason, count in most_first)
    return [
        f"no dead letter on {topic} has the reason {one_line(reason)!r}; "
        + (f"there are: {named}" if named else "there are none at all")
        for reason in dict.fromkeys(wanted)
        if reason not in there
    ]


def is_reason(reason: str, there: Collection[str]) -> bool:
    """One that this version gives, or that some letter has: anything else is a slip of the pen."""
    return reason in there or reason == INTERNAL_ERROR or reason in tuple(Refusal)
