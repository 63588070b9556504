"""The event: one logged (question, contexts, answer). Native form on the wire: docs/events.md."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved passage. `score` is the retriever's own, in the retriever's unit."""

    text: str
    id: str | None = None
    score: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of the conversation; `role` is `user`, `assistant`, `system` or `tool`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Event:
    """One question-answering event, decoded.

    `timestamp` is in seconds since the epoch (UTC). A blank `question`, an empty `contexts` or a blank `answer` is a
    signal that metrics turn into `unscored(reason)`; it is never an error here.
    """

    id: str
    timestamp: float
    question: str | None
    contexts: tuple[Chunk, ...]
    answer: str | None
    reference: str | None = None
    trace_id: str | None = None
    conversation: tuple[Turn, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    feedback: float | None = None


def to_native(event: Event) -> dict[str, Any]:
    """The event as the JSON object of the native form (design: 4.1); absent fields are left out."""
    contexts = [
        {k: v for k, v in (("id", c.id), ("text", c.text), ("score", c.score), ("source", c.source)) if v is not None}
        for c in event.contexts
    ]
    when = datetime.fromtimestamp(event.timestamp, UTC)
    native: dict[str, Any] = {
        "id": event.id,
        "timestamp": when.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "question": event.question,
        "contexts": contexts,
        "answer": event.answer,
    }
    optional: dict[str, Any] = {
        "reference": event.reference,
        "trace_id": event.trace_id,
        "conversation": [{"role": t.role, "content": t.content} for t in event.conversation] or None,
        "labels": dict(event.labels) or None,
        "feedback": event.feedback,
    }
    return native | {k: v for k, v in optional.items() if v is not None}


def encode_event(event: Event) -> bytes:
    """The native form as UTF-8 JSON bytes."""
    return orjson.dumps(to_native(event))


def content_hash(event: Event) -> str:
    """32 hex digits of what is scored: question, chunk texts, answer, reference.

    Parts are length-prefixed, so that no two different events join to the same bytes; an absent part differs from an
    empty one.
    """
    digest = hashlib.sha256()
    for part in (event.question, event.answer, event.reference, *(c.text for c in event.contexts)):
        if part is None:
            digest.update(b"-")
        else:
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(raw))
            digest.update(raw)
    return digest.hexdigest()[:32]
