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
LOGGED = PREFIX + "logged"
TRUNCATED = PREFIX + "truncated"
OURS = frozenset((REASON, DETAIL, TOPIC, PARTITION, OFFSET, ATTEMPT, LOGGED, TRUNCATED))
"""Header names that this module writes; everything else on a dead letter is the producer's own."""
MAX_DETAIL = 500


def dead_letter(
    topic: str,
    *,
    reason: str,
    detail: str,
    read_at: Position,
    logged: float | None,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    keep_payload: bool,
) -> Output:
    """The dead letter of one record. The producer's own headers are kept; null key and value are fine.

    A redriven record that fails again keeps the position and time of its first reading, and its attempt count.
    `logged` is the broker's time of the record in seconds since the epoch. `keep_payload` False writes headers only. A
    value that the broker refuses for its size is sent without it.
    """
    own = producers_headers(headers)
    about: list[tuple[str, bytes | None]] = [
        (REASON, reason.encode()),
        (DETAIL, detail.encode("utf-8", "replace")[:MAX_DETAIL].decode("utf-8", "ignore").encode()),
        *origin_headers(original_position(read_at, headers), original_time(logged, headers), attempts(headers)),
    ]
    bare = Output(topic, key, None, [*own, *about, (TRUNCATED, b"1")])
    if not keep_payload:
        return bare
    return Output(topic, key, value, [*own, *about], smaller=iter([bare, Output(topic, None, None, about)]))


def producers_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """The headers that the record had when it was logged."""
    return [(name, content) for name, content in headers if name not in OURS]


def origin_headers(source: Position, logged: float | None, attempt: int) -> list[tuple[str, bytes | None]]:
    """Where and when the record was first read, and how often it has been sent back since."""
    headers: list[tuple[str, bytes | None]] = [
        (TOPIC, source.topic.encode()),
        (PARTITION, str(source.partition).encode()),
        (OFFSET, str(source.offset).encode()),
    ]
    if logged is not None:
        headers.append((LOGGED, str(round(logged * 1000)).encode()))
    if attempt:
        headers.append((ATTEMPT, str(attempt).encode()))
    return headers


def original_position(read_at: Position, headers: Headers) -> Position:
    """Where a redriven record was first read; `read_at` for any other record, or where the headers are unusable."""
    return noted_position(headers) or read_at


def noted_position(headers: Headers) -> Position | None:
    """The original position that a dead letter or a redriven record carries; None where there is none to be read."""
    found = {name: content for name, content in headers if name in (TOPIC, PARTITION, OFFSET) and content is not None}
    try:
        return Position(found[TOPIC].decode(), int(found[PARTITION]), int(found[OFFSET]))
    except (KeyError, ValueError):
        return None


def original_time(logged: float | None, headers: Headers) -> float | None:
    """When a redriven record was first logged, in seconds since the epoch; `logged` for any other record."""
    noted = _number(headers, LOGGED)
    return logged if noted is None else noted / 1000


def attempts(headers: Headers) -> int:
    """How often the record has been sent back; 0 where no count can be read."""
    return max(_number(headers, ATTEMPT) or 0, 0)


def _number(headers: Headers, wanted: str) -> int | None:
    for name, content in headers:
        if name == wanted and content is not None:
            try:
                return int(content)
            except ValueError:
                return None
    return None
