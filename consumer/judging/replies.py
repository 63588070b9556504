"""What came back from a chat endpoint: a reply, or which kind of failure it is and whether trying again makes sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import orjson

from metrics.llm.chat import Reply
from metrics.outcome import Reason

BUSY = frozenset({429, 503, 529})
PASSING = frozenset({408, 409, 425, 500, 502, 504})
"""Statuses that another try may not meet."""
NEVER = frozenset({401, 403, 404, 405})
"""Statuses that no call at all can get past: key, address or model are wrong."""
LONGEST_HOLD = 3600.0
SHOWN = 160


class Outcome(StrEnum):
    """How one request ended; the label of `judge_requests_total`."""

    OK = "ok"
    TIMEOUT = "timeout"
    BUSY = "busy"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"
    SERVER_ERROR = "server_error"
    REFUSED = "refused"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Failure:
    """One request without a reply. `again`: another try may succeed. `hold_seconds`: how long the server wants to be
    left alone by everybody. `status` is 0 where there was none."""

    outcome: Outcome
    reason: Reason
    detail: str
    again: bool = False
    hold_seconds: float = 0.0
    status: int = 0

    @property
    def is_of_the_server(self) -> bool:
        """True where the next request would probably fail too: what opens the circuit."""
        if self.outcome is Outcome.REFUSED:
            return self.status in NEVER
        return self.outcome not in (Outcome.BUSY, Outcome.UNUSABLE)


def read_reply(content: bytes) -> Reply | Failure:
    """The reply in the body of a 200. Never raises: what cannot be used is a failure, and the same request would give
    the same again."""
    try:
        body = orjson.loads(content)
        choice = body["choices"][0]
        text = _text(choice["message"].get("content"))
        usage = body.get("usage") or {}
        return Reply(
            text,
            str(choice.get("finish_reason") or ""),
            _tokens(usage.get("prompt_tokens")),
            _tokens(usage.get("completion_tokens")),
        )
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        said = content[:SHOWN].decode("utf-8", "replace")
        return Failure(Outcome.UNUSABLE, Reason.JUDGE_PARSE, f"not a chat completion: {said!r}", status=200)


def read_refusal(status: int, content: bytes, headers: Mapping[str, str], now: Callable[[], float]) -> Failure:
    """The failure that another status than 200 stands for. `now`: the wall clock, for a Retry-After that is a date."""
    detail = f"HTTP {status}: {_said(content)}"
    if status in BUSY:
        hold = retry_after(headers.get("retry-after", ""), now)
        return Failure(Outcome.BUSY, Reason.JUDGE_BUSY, detail, again=True, hold_seconds=hold, status=status)
    if status in PASSING or status > 504:
        return Failure(Outcome.SERVER_ERROR, Reason.JUDGE_ERROR, detail, again=True, status=status)
    return Failure(Outcome.REFUSED, Reason.JUDGE_ERROR, detail, status=status)


def retry_after(value: str, now: Callable[[], float]) -> float:
    """Seconds, at most an hour; 0 for a value that is neither seconds nor a date.

    >>> retry_after("7", lambda: 0.0), retry_after("soon", lambda: 0.0)
    (7.0, 0.0)
    >>> retry_after("Thu, 01 Jan 1970 00:01:00 GMT", lambda: 20.0)
    40.0
    """
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, IndexError):
            return 0.0
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now()
    return min(max(seconds, 0.0), LONGEST_HOLD) if seconds == seconds else 0.0


def estimated_tokens(characters: int, non_ascii: int) -> int:
    """A guess for servers that do not count: four characters of Latin script a token, one of any other."""
    return (characters - non_ascii) // 4 + non_ascii


def _text(content: Any) -> str:
    """A message's content: text, or a list of parts, some with text; None (a refusal, only reasoning) is ""."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _tokens(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _said(content: bytes) -> str:
    """The server's own words, in whichever of the usual places they are."""
    try:
        body: Any = orjson.loads(content)
        error = body.get("error", body) if isinstance(body, dict) else body
        said = error.get("message") or error.get("detail") or error if isinstance(error, dict) else error
        return str(said)[:SHOWN]
    except orjson.JSONDecodeError:
        return content[:SHOWN].decode("utf-8", "replace")
