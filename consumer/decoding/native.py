"""The fast path: a record exactly as `metrics.event.encode_event` writes it is taken verbatim.

Everything that a decoded event can hold passes here unchanged, so encoding and decoding again gives the same event.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from consumer.decoding.mapping import folded
from consumer.decoding.reasons import DecodeError, Refusal
from consumer.decoding.scalars import EARLIEST, LATEST, MAX_LABEL, MAX_LABEL_NAME, MAX_LABELS, quantised
from consumer.event_ids import MAX_ID
from metrics.event import Chunk, Event, Turn

NATIVE = "native"
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_CHUNK_KEYS = frozenset({"id", "text", "score", "source"})
_EVENT_KEYS = frozenset({"id", "timestamp", "question", "contexts", "answer", "reference", "trace_id", "conversation",
                         "labels", "feedback"})  # fmt: skip

_READ_BY_THE_FORM = frozenset(map(folded, _EVENT_KEYS)) | frozenset(
    map(folded, ("ground_truth", "ground_truths", "expected_answer", "metadata", "chat_history", "history",
                 "session_id", "app", "service", "lang", "language", "model", "model_name", "kb_version", "rating"))
)  # fmt: skip
"""Other names that forms/native.toml and its rule look at; any further field is ignored here as it is there."""


def verbatim(document: Any, max_chunks: int) -> Event | None:
    """The event of a record in the strict native form, whatever other fields it has; None for any other record.

    Raises:
        DecodeError: too_many_chunks.
    """
    if type(document) is not dict or "answer" not in document:
        return None
    others = document.keys() - _EVENT_KEYS
    if others and not _READ_BY_THE_FORM.isdisjoint(map(folded, others)):
        return None
    identity, when = _text(document.get("id")), _time(document.get("timestamp"))
    if not identity or identity.strip() != identity or len(identity) > MAX_ID or when is None:
        return None
    contexts = document.get("contexts")
    if type(contexts) is not list:
        return None
    if len(contexts) > max_chunks:
        raise DecodeError(Refusal.TOO_MANY_CHUNKS, f"{len(contexts)} contexts; decode.max_chunks allows {max_chunks}")
    chunks = tuple([_chunk(item) for item in contexts])
    turns = _turns(document.get("conversation"))
    labels = _labels(document.get("labels"))
    feedback = document.get("feedback")
    texts = [document.get(name) for name in ("question", "answer", "reference", "trace_id")]
    if (
        None in chunks
        or turns is None
        or labels is None
        or not _is_number(feedback)
        or not all(text is None or (type(text) is str and text.strip() == text) for text in texts)
        or (texts[3] is not None and not 0 < len(texts[3]) <= MAX_ID)
        or texts[2] == ""
    ):
        return None
    return Event(
        id=identity,
        timestamp=when,
        question=texts[0],
        contexts=chunks,  # type: ignore[arg-type]
        answer=texts[1],
        reference=texts[2],
        trace_id=texts[3],
        conversation=turns,
        labels=labels,
        feedback=None if feedback is None else float(feedback),
    )


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _time(value: Any) -> float | None:
    if type(value) is not str:
        return None
    try:
        when = datetime.fromisoformat(value)
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return quantised(seconds) if not value.isdigit() and EARLIEST <= seconds < LATEST else None


def _is_number(value: Any) -> bool:
    return value is None or type(value) is int or (type(value) is float and math.isfinite(value))


def _chunk(item: Any) -> Chunk | None:
    if type(item) is not dict or not item.keys() <= _CHUNK_KEYS:
        return None
    text, identity, score, source = item.get("text"), item.get("id"), item.get("score"), item.get("source")
    if (
        type(text) is not str
        or not text
        or text.strip() != text
        or (identity is not None and (type(identity) is not str or not 0 < len(identity) <= MAX_ID))
        or not _is_number(score)
        or (source is not None and (type(source) is not str or not source))
    ):
        return None
    return Chunk(text, identity, None if score is None else float(score), source)


def _turns(value: Any) -> tuple[Turn, ...] | None:
    if value is None:
        return ()
    if type(value) is not list:
        return None
    turns: list[Turn] = []
    for turn in value:
        if type(turn) is not dict or turn.keys() != {"role", "content"}:
            return None
        if type(turn["role"]) is not str or turn["role"] not in _ROLES:
            return None
        if type(turn["content"]) is not str or not turn["content"]:
            return None
        turns.append(Turn(turn["role"], turn["content"]))
    return tuple(turns)


def _labels(value: Any) -> dict[str, str] | None:
    if value is None:
        return {}
    if type(value) is not dict or len(value) > MAX_LABELS:
        return None
    for name, text in value.items():
        if type(text) is not str or not text or not name or len(name) > MAX_LABEL_NAME or len(text) > MAX_LABEL:
            return None
    return value
