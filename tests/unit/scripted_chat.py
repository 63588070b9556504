"""A chat model that says what a test tells it to: fulfils `metrics.llm.chat.Chat`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metrics.llm.chat import Message, Reply


@dataclass(frozen=True, slots=True)
class Asked:
    """One request; `kind` is the prompt, told by the keys that its schema asks for."""

    kind: str
    system: str
    user: str
    max_tokens: int
    schema: Mapping[str, Any]

    @property
    def claims(self) -> list[str]:
        """The claims or sentences or passages of the request, in order."""
        single = re.findall(r"^(?:Claim|说法)[:：] ?(.+)$", self.user, re.MULTILINE)
        return single or re.findall(r"^\d+\. (.+)$", self.user, re.MULTILINE)

    @property
    def passages(self) -> list[str]:
        return re.findall(r"^\[\d+\] (.+)$", self.user, re.MULTILINE)


@dataclass(slots=True)
class Scripted:
    """`answer` gives the reply's text (or an object, sent as JSON, or a whole `Reply`) to one request."""

    answer: Callable[[Asked], Any]
    model: str = "scripted-1"
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        assert schema is not None
        one = Asked(_kind(schema), messages[0]["content"], messages[-1]["content"], max_tokens, schema)
        with self.lock:
            self.asked.append(one)
        said = self.answer(one)
        if isinstance(said, Reply):
            return said
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        return Reply(text, "stop", 100, 10)

    def of(self, kind: str) -> list[Asked]:
        return [one for one in self.asked if one.kind == kind]


def _kind(schema: Mapping[str, Any]) -> str:
    keys = set(schema["properties"])
    if "verdict" in keys:
        return "verdict"
    if "problem" in keys:
        return "doubt"
    if "found" in keys:
        return "confirm"
    (key,) = keys
    return str({"claims": "verdicts", "statements": "split", "questions": "questions", "passages": "useful"}[key])


def verdict(label: str, reason: str = "because", quote: str = "") -> dict[str, str]:
    return {"reason": reason, "verdict": label, "quote": quote}


def found(yes: bool, quote: str = "") -> dict[str, object]:
    return {"quote": quote, "found": yes}


def problem(what: str, detail: str = "a detail") -> dict[str, str]:
    return {"detail": detail, "problem": what}
