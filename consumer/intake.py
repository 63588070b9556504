"""From a delivered record to work for a scorer, or to its end: decode, decide, redact. Nothing here waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumer.deadletters import original_position, original_time
from consumer.decode import Decoded, DecodeError, Decoder
from consumer.decoding.reasons import INTERNAL_ERROR
from consumer.delivered import Headers
from consumer.record import Position
from consumer.redaction import Redactor
from consumer.sampling import Decision, Sampler
from consumer.segments import Segmenter
from metrics.event import Event

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Raw:
    """One delivered record. `broker_time` in seconds since the epoch, None where the broker has none."""

    source: Position
    key: bytes | None
    value: bytes | None
    headers: Headers
    broker_time: float | None


@dataclass(frozen=True, slots=True)
class Sampled:
    """An event that is to be scored, redacted. `probability` is that of being scored: sampled, and not shed."""

    event: Event
    segment: Mapping[str, str]
    labels: Mapping[str, str]
    source: Position
    probability: float
    sampled_by: str
    unit: float = 0.0
    """Its place in [0, 1): a budget that thins further compares with the number that sampled."""


@dataclass(frozen=True, slots=True)
class SampledOut:
    """Stage 2 left it out."""


@dataclass(frozen=True, slots=True)
class Shed:
    """Sampled, but beyond what can be scored."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing to score: a tombstone, or the judge's own traffic."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A dead letter to be: why, and the detail for the person who reads it."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one record, and which repairs were made on the way."""

    result: Sampled | SampledOut | Shed | Ignored | Refused
    repairs: tuple[str, ...] = ()


Admit = Callable[[Decision, float], float | None]
"""Given the decision and when the event was logged: the probability of being scored, or None where it is shed."""


class Intake:
    """Decode → sample (stage 2) → admit or shed → redact, for one record at a time."""

    def __init__(self, decoder: Decoder, sampler: Sampler, segmenter: Segmenter, redactor: Redactor) -> None:
        self._decoder = decoder
        self._sampler = sampler
        self._segmenter = segmenter
        self._redactor = redactor

    def take(self, raw: Raw, early_id: bytes | None, admit: Admit) -> Taken:
        """Never raises: a fault of ours in one event is a dead letter `internal_error`, not a stopped partition."""
        if not raw.value:
            return Taken(Ignored())
        try:
            return self._take(raw, raw.value, early_id, admit)
        except DecodeError as error:
            return Taken(Refused(error.reason, str(error)))
        except Exception as error:
            log.exception("an event at %s could not be taken in", raw.source)
            return Taken(Refused(INTERNAL_ERROR, f"{type(error).__name__} while taking the event in"))

    def _take(self, raw: Raw, value: bytes, early_id: bytes | None, admit: Admit) -> Taken:
        source = original_position(raw.source, raw.headers)
        fallback = early_id.decode("utf-8", "backslashreplace") if early_id is not None else str(source)
        logged = original_time(raw.broker_time, raw.headers)
        decoded: Decoded = self._decoder.decode(value, fallback_id=fallback, broker_time=logged, key=raw.key)
        if decoded.ignored:
            return Taken(Ignored(), decoded.repairs)
        event = decoded.event
        segment = self._segmenter.segment(event)
        unit_id = early_id if early_id is not None else event.id.encode("utf-8", "surrogatepass")
        decision = self._sampler.decide(unit_id, event, segment, raw.headers)
        if not decision.kept:
            return Taken(SampledOut(), decoded.repairs)
        probability = admit(decision, event.timestamp if raw.broker_time is None else raw.broker_time)
        if probability is None:
            return Taken(Shed(), decoded.repairs)
        redacted = self._redactor.redact(event)
        sampled = Sampled(
            redacted,
            segment,
            self._segmenter.contrast(redacted),
            source,
            probability,
            decision.sampled_by,
            decision.unit,
        )
        return Taken(sampled, decoded.repairs)
