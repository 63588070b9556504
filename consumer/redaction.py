"""Takes personal data out of an event, once, before anything leaves the process (docs/redaction.md).

The same value gets the same token everywhere in one event (`[PHONE-1]`), so that an answer that changes a number is
still seen to change it. Tokens are numbered per event and mean nothing across events.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import regex

from consumer import settings
from consumer.decoding.reasons import DecodeError, Refusal
from consumer.event_ids import REDACTED, redacted_id
from consumer.redacting.own_patterns import compile_pattern
from consumer.redacting.personal_data import find_personal_data
from consumer.redacting.spans import Span
from metrics.event import Chunk, Event, Turn

PATTERN_BUDGET_SECONDS: Final = 0.25
"""For a user's own patterns, per event; beyond it the event is refused rather than let out unredacted."""
_TOKEN = re.compile(r"\[([A-Z][A-Z0-9_]*)-([0-9]{1,6})\]")
_MOST_PASSES = 8


class Redactor:
    """Redacts by the built-in kinds and the user's own patterns. Holds no state between events."""

    def __init__(self, settings: settings.Redaction) -> None:
        self._enabled = settings.enabled
        self._kinds = frozenset(settings.kinds)
        self._patterns = (
            tuple((p.name, compile_pattern(p.pattern)) for p in settings.patterns) if settings.enabled else ()
        )

    def redact(self, event: Event) -> Event:
        """The event without personal data in question, contexts, answer, reference, conversation and label values; the
        same object where there is none. In the ids and sources of chunks only e-mail addresses and the user's own
        patterns are looked for: they are made of numbers that pass any check by chance.

        The event id and the trace id must stay unique, so they carry no token: one with an e-mail address or a match of
        a user's own pattern becomes `redacted-` and 32 hex digits of its SHA-256.

        Raises:
            DecodeError: `redaction_timeout`, the user's own patterns took longer than `PATTERN_BUDGET_SECONDS`; nothing
                of the event may leave the process except to the dead letter.
        """
        if not self._enabled:
            return event
        find = _Finder(self._kinds, self._patterns, time.monotonic() + PATTERN_BUDGET_SECONDS)
        tokens = _Tokens(event)

        def text(value: str) -> str:
            return _redacted(value, find.spans, tokens)

        def optional(value: str | None) -> str | None:
            return text(value) if value else value

        def name(value: str | None) -> str | None:
            return _redacted(value, find.spans_in_name, tokens) if value else value

        question = optional(event.question)
        contexts = tuple(
            Chunk(text(c.text), id=name(c.id), score=c.score, source=name(c.source)) for c in event.contexts
        )
        redacted = Event(
            id=_redacted_id(event.id, find),
            timestamp=event.timestamp,
            question=question,
            contexts=contexts,
            answer=optional(event.answer),
            reference=optional(event.reference),
            trace_id=_redacted_id(event.trace_id, find) if event.trace_id else event.trace_id,
            conversation=tuple(Turn(turn.role, text(turn.content)) for turn in event.conversation),
            labels={name: text(value) for name, value in event.labels.items()},
            feedback=event.feedback,
        )
        return event if redacted == event else redacted


class _Finder:
    """Finds spans in the texts of one event; the user's patterns share one deadline."""

    def __init__(
        self, kinds: frozenset[str], patterns: tuple[tuple[str, regex.Pattern[str]], ...], deadline: float
    ) -> None:
        self._kinds = kinds
        self._patterns = patterns
        self._deadline = deadline

    def spans(self, text: str) -> list[Span]:
        """In order, without overlap, and none that touches a token that stands there already."""
        return self._free(text, find_personal_data(text, self._kinds))

    def spans_in_name(self, name: str) -> list[Span]:
        """As `spans`, for an id or a file name: no numbers."""
        return self._free(name, find_personal_data(name, self._kinds & {"EMAIL"}))

    def _free(self, text: str, spans: list[Span]) -> list[Span]:
        if self._patterns:
            spans = _merged(spans + self._own(text), text)
        if spans and "[" in text:
            tokens = [m.span() for m in _TOKEN.finditer(text)]
            spans = [s for s in spans if not any(s.start < end and start < s.end for start, end in tokens)]
        return spans

    def _own(self, text: str) -> list[Span]:
        found = []
        for name, pattern in self._patterns:
            try:
                left = max(self._deadline - time.monotonic(), 0.001)
                matches = list(pattern.finditer(text, timeout=left))
            except TimeoutError:
                detail = f"redaction pattern {name} took longer than {PATTERN_BUDGET_SECONDS} s; make it simpler"
                raise DecodeError(Refusal.REDACTION_TIMEOUT, detail) from None
            found += [Span(m.start(), m.end(), name, m.group()) for m in matches if m.end() > m.start()]
        return found


class _Tokens:
    """Numbers the values of one event: one number per kind and value, in the order of first appearance."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self._last: dict[str, int] | None = None
        self._known: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def token(self, span: Span) -> str:
        known = self._known.setdefault((span.kind, span.key), [])
        for place, (country, token) in enumerate(known):
            # A national number is the same as an international one with its digits; two countries' are not.
            if country == span.country or not country or not span.country:
                known[place] = (country or span.country, token)
                return token
        if self._last is None:
            self._last = _highest_tokens(self._event)
        number = self._last[span.kind] = self._last.get(span.kind, 0) + 1
        token = f"[{span.kind}-{number}]"
        known.append((span.country, token))
        return token


def _highest_tokens(event: Event) -> dict[str, int]:
    """The numbers that are taken: a text may come with tokens of an earlier redaction."""
    highest: dict[str, int] = {}
    texts = [event.question, event.answer, event.reference, *event.labels.values()]
    texts += [part for chunk in event.contexts for part in (chunk.text, chunk.id, chunk.source)]
    texts += [turn.content for turn in event.conversation]
    for text in texts:
        if text and "[" in text:
            for kind, number in _TOKEN.findall(text):
                highest[kind] = max(highest.get(kind, 0), int(number))
    return highest


def _redacted(text: str, find: Callable[[str], list[Span]], tokens: _Tokens) -> str:
    # What a replacement leaves beside it may now stand alone and read as a number, so it is looked at again.
    for _ in range(_MOST_PASSES):
        spans = find(text)
        if not spans:
            break
        parts, at = [], 0
        for span in spans:
            parts += [text[at : span.start], tokens.token(span)]
            at = span.end
        text = "".join([*parts, text[at:]])
    return text


def _redacted_id(value: str, find: _Finder) -> str:
    if value.startswith(REDACTED) or not find.spans_in_name(value):
        return value
    return redacted_id(value)


def _merged(spans: list[Span], text: str) -> list[Span]:
    """Overlapping spans become one, of the kind of the longest: no end of a value is left standing."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
        elif span.end > merged[-1].end:
            last = merged[-1]
            kind = max(last, span, key=lambda s: s.end - s.start).kind
            merged[-1] = Span(last.start, span.end, kind, text[last.start : span.end])
    return merged
