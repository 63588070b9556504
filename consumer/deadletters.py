"""Dead letters: the original bytes, and in headers the reason and where the record was read (design: 4.4)."""

from __future__ import annotations

from consumer.delivered import Headers
from consumer.outputs import Output
from consumer.record import Position

PREFIX = "groundwatch-"
REASON = PREFIX + "reason"
DETAIL = PREFIX + "detail"
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
ATTEMPT = PREFIX + "attempt"
TRUNCATED = PREFIX + "truncated"
MAX_DETAIL = 500


def dead_letter(
    topic: str,
    *,
    reason: str,
    detail: str,
    source: Position,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    keep_payload: bool,
) -> Output:
    """The dead letter of one record. The producer's own headers are kept; null key and value are fine.

    `keep_payload` False writes headers only. A value that the broker refuses for its size is sent without it.
    """
    own = [(name, content) for name, content in headers if not name.startswith(PREFIX) or name == ATTEMPT]
    about: list[tuple[str, bytes | None]] = [
        (REASON, reason.encode()),
        (DETAIL, detail.encode("utf-8", "replace")[:MAX_DETAIL]),
        (TOPIC, source.topic.encode()),
        (PARTITION, str(source.partition).encode()),
        (OFFSET, str(source.offset).encode()),
    ]
    bare = Output(topic, key, None, [*own, *about, (TRUNCATED, b"1")])
    if not keep_payload:
        return bare
    return Output(topic, key, value, [*own, *about], smaller=iter([bare, Output(topic, None, None, about)]))


def original_position(read_at: Position, headers: Headers) -> Position:
    """Where a redriven record was first read; `read_at` for any other record, or where the headers are unusable."""
    found = {name: content for name, content in headers if name in (TOPIC, PARTITION, OFFSET) and content is not None}
    try:
        return Position(found[TOPIC].decode(), int(found[PARTITION]), int(found[OFFSET]))
    except (KeyError, ValueError):
        return read_at
