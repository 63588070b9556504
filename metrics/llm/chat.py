"""The one protocol behind which every chat endpoint stands: messages in, one reply or one reason out.

Judging knows nothing of HTTP, retries, budgets or breakers: they are the business of whoever fulfils `Chat`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from metrics.outcome import Reason

Message = Mapping[str, str]
"""`role` (system, user or assistant) and `content`."""

CUT = "length"
"""The finish reason of a reply that ended because `max_tokens` were used up."""


@dataclass(frozen=True, slots=True)
class Reply:
    """`finish_reason` as the server gave it: `stop`, `length`, ...; tokens are 0 where the server does not say."""

    text: str
    finish_reason: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatError(Exception):
    """No reply. `reason` is what the metric becomes: judge_timeout, judge_busy, judge_error or budget."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail or reason.value)
        self.reason = reason


class Chat(Protocol):
    """A chat model at temperature 0. Blocking; safe to call from several threads at once."""

    @property
    def model(self) -> str:
        """Name of the model, as verdicts depend on it: part of every definition and of every key of the cache."""
        ...

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        """One reply. `schema`: JSON schema of the reply, for servers that can be held to one; others ignore it.

        Raises:
            ChatError: no reply; retries, waiting and budgets are already behind it.
        """
        ...
