"""Which events are scored: two stages, one salted hash of the event id.

Stage 1 works on the raw record, before decoding, where the id can be seen there; it keeps at the highest rate that any
rule can still give. Stage 2 works on the decoded event and thins with the *same* hash to the event's own rate. So every
replica and every re-run chooses the same events, and a 10 % sample lies inside the 25 % sample (docs/sampling.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from consumer import settings
from consumer.delivered import Delivered
from consumer.settings_rules import segment_conditions
from metrics.event import Event

Headers = Sequence[tuple[str, bytes | None]]

_BITS = 53
"""A float in [0, 1) carries 53 bits exactly, so the number that is recorded is the number that was compared."""
_ALWAYS = b"\xff" * 33
"""Greater than every digest."""


def unit_interval(salt: str, event_id: bytes) -> float:
    """The place of an event in [0, 1): uniform over ids, the same in every process; an event is in a sample of rate r
    where it is below r.

    The top 53 bits of SHA-256(salt, NUL, id). Another use of the hash (an audit, a budget) takes another salt where it
    must be independent of the sample.
    """
    digest = sha256(_prefix(salt) + event_id).digest()
    return float((int.from_bytes(digest[:8], "big") >> 11) / (1 << _BITS))


def _prefix(salt: str) -> bytes:
    return salt.encode("utf-8", "surrogatepass") + b"\0"


def _threshold(rate: float) -> bytes:
    """The bytes that a digest is below exactly where its `unit_interval` is below `rate`."""
    steps = math.ceil(rate * (1 << _BITS))
    return _ALWAYS if steps >= 1 << _BITS else (steps << 11).to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class Decision:
    """What stage 2 decided. `probability` is that of the event's inclusion, in (0, 1], kept or not."""

    kept: bool
    probability: float
    sampled_by: str
    """`rate`, or `rule:NAME` of the always-rule that kept it."""
    unit: float
    """Place of the event in [0, 1); a budget that thins further compares with the same number."""


class Sampler:
    """Decides from settings alone; holds no state, so that one may be shared between threads."""

    def __init__(self, settings: settings.Sampling) -> None:
        self._salt = settings.salt
        self._prefix = _prefix(settings.salt)
        self._id_header = settings.id_header
        self._key_is_id = settings.key_is_id
        self._rate = settings.rate
        self._segment_rates = _by_specificity(settings.segment_rates)
        self._header_rules = tuple(
            (f"rule:{rule.name}", *_header_condition(rule.header)) for rule in settings.always if rule.header
        )
        self._event_rules: tuple[tuple[str, Callable[[Event], bool]], ...] = tuple(
            (f"rule:{rule.name}", _event_condition(rule)) for rule in settings.always if not rule.header
        )
        # A header can be seen at stage 1, so a header rule need not raise the rate; what only the decoded event shows
        # (a label, the feedback) makes stage 1 keep everything.
        self.highest_rate = 1.0 if self._event_rules else max((settings.rate, *settings.segment_rates.values()))
        self.reads_headers = bool(self._id_header or self._header_rules)
        """Whether anything is decided from headers; a caller may leave them unread where it is False."""
        self.samples_early = self.highest_rate < 1.0 and (self._key_is_id or bool(self._id_header))
        """Whether stage 1 can drop anything: an id that is seen before decoding, and a rate below 1."""
        self.decides_early = self.samples_early and not settings.segment_rates and not settings.always
        """Whether stage 1 is the whole decision: one rate for all, at which everything that it keeps is sampled."""
        self._early = _threshold(self.highest_rate)

    def early_id(self, key: bytes | None, headers: Headers | None) -> bytes | None:
        """The event id where it can be had without decoding: the configured header, else the key; else None."""
        if self._id_header and headers:
            for name, value in headers:
                if name == self._id_header and value:
                    return value
        if self._key_is_id and key:
            return key
        return None

    def keep_early(self, event_id: bytes, headers: Headers | None = None) -> bool:
        """Stage 1: whether any rule can still keep the event. What is dropped here would be dropped by `decide` too.

        `headers` None means that they are not known: with a header rule in the settings the event is then kept for
        stage 2. A record that has none is `()`.
        """
        if sha256(self._prefix + event_id).digest() < self._early:
            return True
        if not self._header_rules:
            return False
        return headers is None or self._by_header(headers) is not None

    def early_filter(self) -> Callable[[Delivered], bool]:
        """Stage 1 as one function of a delivered record: False where no rule can keep it any more.

        It runs for every event on the topic, so that the usual case (the key is the id, no header is read) is made of
        as few calls as can be.
        """
        if not self.samples_early:
            return lambda record: True
        if self._key_is_id and not self.reads_headers:
            prefix, early, digest = self._prefix, self._early, sha256

            def keeps_key(record: Delivered) -> bool:
                key = record.key()
                return not key or digest(prefix + key).digest() < early

            return keeps_key

        def keeps(record: Delivered) -> bool:
            headers = record.headers() or ()
            event_id = self.early_id(record.key(), headers)
            return event_id is None or self.keep_early(event_id, headers)

        return keeps

    def unit_of(self, event_id: bytes) -> float:
        """The place of an event in [0, 1)."""
        return unit_interval(self._salt, event_id)

    def decide(
        self, event_id: bytes, event: Event, segment: Mapping[str, str], headers: Headers | None = None
    ) -> Decision:
        """Stage 2: an always-rule keeps with probability 1, else the rate of the most specific matching segment."""
        unit = unit_interval(self._salt, event_id)
        rule = self._by_header(headers) if headers and self._header_rules else None
        if rule is None:
            rule = next((name for name, holds in self._event_rules if holds(event)), None)
        if rule is not None:
            return Decision(True, 1.0, rule, unit)
        rate = self.rate_of(segment)
        return Decision(unit < rate, rate, "rate", unit)

    def rate_of(self, segment: Mapping[str, str]) -> float:
        """The rate of a segment, without always-rules."""
        for conditions, rate in self._segment_rates:
            if all(segment.get(name) == value for name, value in conditions):
                return rate
        return self._rate

    def _by_header(self, headers: Headers) -> str | None:
        for rule, wanted_name, wanted_value in self._header_rules:
            for name, value in headers:
                if name == wanted_name and (wanted_value is None or value == wanted_value):
                    return rule
        return None


def _by_specificity(rates: Mapping[str, float]) -> tuple[tuple[tuple[tuple[str, str], ...], float], ...]:
    """Most conditions first; of two with as many, the higher rate: the order in the file means nothing."""
    parsed = [(tuple(segment_conditions(key).items()), rate) for key, rate in rates.items()]
    return tuple(sorted(parsed, key=lambda entry: (-len(entry[0]), -entry[1], entry[0])))


def _header_condition(header: str) -> tuple[str, bytes | None]:
    name, separator, value = header.partition("=")
    return name.strip(), value.strip().encode() if separator else None


def _event_condition(rule: settings.AlwaysRule) -> Callable[[Event], bool]:
    if rule.negative_feedback:
        return lambda event: event.feedback is not None and event.feedback < 0
    name, _, value = (part.strip() for part in rule.label.partition("="))
    return lambda event: event.labels.get(name) == value


class KeyIsNotId(Exception):
    """`sampling.key_is_id` is plainly false; the message says what was measured and what to do."""


class KeyCheck:
    """Measures distinct keys per event, in bounded memory, while `sampling.key_is_id` is in force.

    Where the key is a user or a session, all events of one key are sampled together and the error bars are too narrow.
    A window of the first events would miss a large user base, so the check goes on to `until` events, at each power
    of ten, on a share of the *keys* that halves whenever it outgrows its memory. It may be shown all events, or those
    that stage 1 keeps: that is a sample of keys with all their events.
    """

    def __init__(self, minimum: float = 0.9, most_keys: int = 8192, until: int = 1_000_000) -> None:
        self._minimum = minimum
        self._until = until
        self._most_keys = most_keys
        self.restart()

    def restart(self) -> None:
        """Begin anew: after an assignment, where records that were not committed are read again."""
        self._seen = 0
        self._next_look = 1_000
        self._mask = 0
        self._counts: dict[int, int] = {}
        self.done = False
        """Nothing more is measured; a caller may leave the calls out."""

    def observe(self, key: bytes | None) -> None:
        """Count one record's key; a record without one has its id elsewhere and counts for nothing.

        Raises:
            KeyIsNotId: fewer than `minimum` distinct keys per event.
        """
        if self.done or not key:
            return
        self._seen += 1
        # The process's own hash is right here and nowhere else: it picks what is measured, never what is sampled.
        place = hash(key)
        if not place & self._mask:
            self._counts[place] = self._counts.get(place, 0) + 1
            if len(self._counts) > self._most_keys:
                self._mask = self._mask << 1 | 1
                self._counts = {p: n for p, n in self._counts.items() if not p & self._mask}
        if self._seen >= self._next_look:
            self._look()

    def _look(self) -> None:
        # Few keys may all fall outside a thinned share only where most were repeated: the mask grew for many keys.
        share = len(self._counts) / max(sum(self._counts.values()), 1)
        if share < self._minimum:
            raise KeyIsNotId(
                f"sampling.key_is_id is set, but the record key is not the event id: {share:.2f} distinct keys per "
                f"event in the first {self._seen:,} events measured, at least {self._minimum} are expected; events "
                "of one key would be sampled together. Set sampling.key_is_id = false, or name the header that carries "
                "the id in sampling.id_header"
            )
        self._next_look *= 10
        self.done = self._next_look > self._until
