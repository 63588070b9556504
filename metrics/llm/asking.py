"""Questions to the chat model about one event: read tolerantly, asked once more where unreadable, counted, kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from metrics.llm.chat import CUT, Chat, ChatError, Reply
from metrics.llm.prompts import PromptSet, filled
from metrics.llm.replies import by_id, items_of
from metrics.llm.verdict_cache import VerdictCache, cache_key
from metrics.outcome import Reason

log = logging.getLogger(__name__)

KEPT_CHARACTERS = 4000
"""Characters of an unreadable reply that are kept for the case file."""
KEPT_REPLIES = 4
ENVELOPE_TOKENS = 40
"""Tokens of a reply beside its items."""

V = TypeVar("V")
Schema = Mapping[str, object]


class Unjudged(Exception):
    """The judge gave nothing that could be used; `reason` is what the metric becomes."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Session:
    """What is asked for the sake of one event. Used by one thread."""

    def __init__(self, chat: Chat, prompts: PromptSet, cache: VerdictCache, nonce: str) -> None:
        self.prompts = prompts
        self.nonce = nonce
        self.cost = {"judge_calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
        self.unread: list[str] = []
        """Replies that could not be read, or not wholly."""
        self._chat = chat
        self._cache = cache

    def one(
        self,
        prompt: str,
        values: Mapping[str, str],
        *,
        schema: Schema,
        max_tokens: int,
        read: Callable[[str], V | None],
    ) -> V:
        """Ask for one value, once more where the reply cannot be read.

        Raises:
            Unjudged: judge_incomplete where the reply was cut, judge_parse where it could not be read; or what the
                chat says.
        """
        reply = self._complete(prompt, values, schema, max_tokens)
        found = read(reply.text)
        if found is not None:
            return found
        self._keep(reply)
        reply = self._complete(prompt, values, schema, 2 * max_tokens, again=True)
        found = read(reply.text)
        if found is not None:
            return found
        self._keep(reply)
        raise Unjudged(Reason.JUDGE_INCOMPLETE if reply.finish_reason == CUT else Reason.JUDGE_PARSE)

    def several(
        self,
        prompt: str,
        values: Callable[[Sequence[int]], Mapping[str, str]],
        count: int,
        *,
        key: str,
        needed: str,
        schema: Callable[[int], Schema],
        tokens_each: int,
        read: Callable[[Mapping[str, Any]], V | None],
    ) -> list[V]:
        """Ask for `count` values that are matched by id; those that are missing are asked for once more.

        Args:
            values: Fills the prompt with the items of these indices, numbered from 1 in this order.
            schema: Of a reply with so many items.
            key: Under which the reply has its list; each item has `id` and `needed`.

        Raises:
            Unjudged: judge_incomplete where values are missing, judge_parse where no list could be read; or what the
                chat says.
        """
        found: dict[int, V] = {}
        readable = False
        for again in (False, True):
            wanted = [at for at in range(count) if at not in found]
            most = (ENVELOPE_TOKENS + tokens_each * len(wanted)) * (2 if again else 1)
            reply = self._complete(prompt, values(wanted), schema(len(wanted)), most, again=again)
            items = items_of(reply.text, key, needed)
            readable = readable or items is not None
            for number, item in by_id(items or [], len(wanted)).items():
                value = read(item)
                if value is not None:
                    found[wanted[number - 1]] = value
            if len(found) == count:
                return [found[at] for at in range(count)]
            self._keep(reply)
        raise Unjudged(Reason.JUDGE_INCOMPLETE if readable else Reason.JUDGE_PARSE)

    def key(self, prompt: str, *parts: str) -> str:
        """Key of what this judge says about these texts with this prompt."""
        template = self.prompts.prompts[prompt]
        return cache_key(self._chat.model, self.prompts.version, prompt, template.system, template.user, *parts)

    def known(self, keys: Sequence[str]) -> list[Any]:
        """What the cache holds, parsed; None where it holds nothing that can be read."""
        return [_loaded(raw) for raw in self._cache.get_many(keys)] if keys else []

    def keep(self, values: Mapping[str, Any]) -> None:
        """Put what was judged into the cache."""
        if values:
            self._cache.put_many({k: json.dumps(v, ensure_ascii=True).encode() for k, v in values.items()})

    def _complete(
        self, prompt: str, values: Mapping[str, str], schema: Schema, max_tokens: int, *, again: bool = False
    ) -> Reply:
        template = self.prompts.prompts[prompt]
        user = filled(template.user, {"nonce": self.nonce, **values})
        if again:
            # At temperature 0 the same words would get the same reply.
            user = f"{user}\n{self.prompts.prompts['again'].user.strip()}"
        messages = [{"role": "system", "content": template.system.strip()}, {"role": "user", "content": user}]
        try:
            reply = self._chat.complete(messages, max_tokens=max_tokens, schema=schema)
        except ChatError as error:
            raise Unjudged(error.reason) from error
        except Exception as error:
            log.exception("asking the judge failed")
            raise Unjudged(Reason.JUDGE_ERROR) from error
        self.cost["judge_calls"] += 1
        self.cost["prompt_tokens"] += reply.prompt_tokens
        self.cost["completion_tokens"] += reply.completion_tokens
        return reply

    def _keep(self, reply: Reply) -> None:
        if len(self.unread) < KEPT_REPLIES:
            self.unread.append(reply.text[:KEPT_CHARACTERS])


def object_schema(**properties: object) -> Schema:
    """JSON schema of an object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(key: str, count: int | None, **properties: object) -> Schema:
    """JSON schema of `{key: [{"id": ..., **properties}, ...]}` with `count` items, or any number of them."""
    items: dict[str, object] = {"type": "array", "items": object_schema(id={"type": "integer"}, **properties)}
    if count is not None:
        items |= {"minItems": count, "maxItems": count}
    return object_schema(**{key: items})


def _loaded(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
