"""What one server takes of the chat protocol, found out once from what it refuses.

Servers differ: some take a JSON schema, some only `json_object`, some neither; newer models want
`max_completion_tokens` or refuse a temperature. llama.cpp reuses what it computed of earlier prompts unless it is told
not to (`cache_prompt`), and then rounds otherwise, so that a second run may differ. What a server takes shows in a
refusal of the first call; afterwards no call is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from consumer.decode import JUDGE_MARK
from metrics.llm.chat import Message

Structured = Literal["json_schema", "json_object", "text"]
LADDER: tuple[Structured, ...] = ("json_schema", "json_object", "text")
SEED = 7
REFUSALS = frozenset({400, 404, 415, 422, 500, 501})
"""Statuses with which servers refuse a field that they do not know; 500 counts only where the reply names the field."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How requests are written for one server. `settled`: a call went through, so a refusal means something else.
    `told`: the operator names the reply's structure, which is then kept."""

    structured: Structured = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    seed: bool = True
    cache_prompt: bool = True
    settled: bool = False
    told: bool = False


def request_body(
    dialect: Dialect,
    model: str,
    messages: Sequence[Message],
    max_tokens: int,
    schema: Mapping[str, object] | None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """The JSON of one request: temperature 0, a fixed seed, and our mark as `user`, by which the judge's own traffic is
    known if it comes by on the watched topic."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in messages],
        dialect.limit: max_tokens,
        "user": JUDGE_MARK,
        "stream": False,
    }
    if dialect.temperature:
        body["temperature"] = 0
    if dialect.seed:
        body["seed"] = SEED
    if dialect.cache_prompt:
        body["cache_prompt"] = False
    if schema is not None and dialect.structured == "json_schema":
        named = {"name": "reply", "strict": True, "schema": dict(schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif schema is not None and dialect.structured == "json_object":
        body["response_format"] = {"type": "json_object"}
    return {**body, **extra}


def adapted(dialect: Dialect, status: int, said: str, with_schema: bool) -> Dialect | None:
    """The dialect to try after a refusal; None where the refusal is of the request itself.

    A field that the reply names is changed first. Where it names none, `cache_prompt` is the first suspect, as only one
    kind of server knows it, and the reply's structure the next.

    >>> adapted(Dialect(), 400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", True).limit
    'max_completion_tokens'
    >>> adapted(Dialect(), 400, "'response_format.type' must be 'json_object' or 'text'", True).structured
    'json_object'
    >>> adapted(Dialect(), 400, "bad request", True).cache_prompt
    False
    >>> adapted(Dialect(settled=True), 400, "the prompt is too long", True) is None
    True
    """
    if status not in REFUSALS:
        return None
    if dialect.limit == "max_tokens" and "max_completion_tokens" in said:
        return replace(dialect, limit="max_completion_tokens")
    lower = said.casefold()
    names_structure = "response_format" in lower or "json_schema" in lower
    if not names_structure and dialect.temperature and "temperature" in lower:
        return replace(dialect, temperature=False)
    if not names_structure and dialect.seed and "seed" in lower:
        return replace(dialect, seed=False)
    if dialect.cache_prompt and "cache_prompt" in lower:
        return replace(dialect, cache_prompt=False)
    if dialect.cache_prompt and not names_structure and not dialect.settled and status != 500:
        return replace(dialect, cache_prompt=False)
    if (
        dialect.settled
        or dialect.told
        or not with_schema
        or dialect.structured == LADDER[-1]
        or (status == 500 and not names_structure)
    ):
        return None
    return replace(dialect, structured=LADDER[LADDER.index(dialect.structured) + 1])
