"""Dead letters back to the scorer after a fix (design: 4.4): which to send, and as what.

What was sent before is read from the redrive topic itself: a record there names the first position of its event and the
number of the attempt, and one letter leads to one such pair. So a second run, or a run that was interrupted, sends
nothing twice, whatever the filters were. A record that a killed scorer dead-lettered twice is a letter and a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from consumer.deadletter_hints import NO_FIX
from consumer.deadletter_reading import Letter, Repeats
from consumer.deadletters import attempts, noted_position, origin_headers
from consumer.delivered import Delivered
from consumer.record import Position

MAX_ATTEMPTS = 3


class Left(StrEnum):
    """Why a letter is not sent."""

    OTHER_REASON = "other reason"
    OLDER = "older"
    NO_FIX = "no fix helps, and --reason does not name them"
    NOT_OURS = "not written by the scorer"
    NO_PAYLOAD = "without payload"
    EXHAUSTED = "three attempts made"
    SENT_BEFORE = "sent before"
    REPEAT = "repeats (the scorer wrote the same letter twice)"
    BEYOND_MAX = "beyond --max"


@dataclass(frozen=True, slots=True)
class Sending:
    """One record for the redrive topic: the event first read at `source`, for the `attempt`-th time."""

    source: Position
    attempt: int


@dataclass(frozen=True, slots=True)
class Redriven:
    """What to write: original key, bytes and producer's headers, and where it all began."""

    reason: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


def sent_before(records: Iterable[Delivered]) -> set[Sending]:
    """What lies on the redrive topic. A record without its original position was put there by somebody else."""
    sent = set()
    for record in records:
        headers = record.headers() or ()
        source = noted_position(headers)
        if source is not None:
            sent.add(Sending(source, attempts(headers)))
    return sent


@dataclass(slots=True)
class Chooser:
    """Decides letter by letter, in the order of the topic, and counts.

    `sent` is what the redrive topic holds, and is added to; `reasons` empty takes every reason that a fix can help;
    `since` is in seconds since the epoch; `most` letters at most.
    """

    sent: set[Sending]
    reasons: Collection[str] = ()
    since: float | None = None
    most: int | None = None
    letters: int = 0
    chosen: Counter[str] = field(default_factory=Counter)
    """By reason."""
    left: Counter[Left] = field(default_factory=Counter)
    seen_reasons: Counter[str] = field(default_factory=Counter)
    """Letters by reason, repeats not counted."""
    _repeats: Repeats = field(default_factory=Repeats)
    """Of the letters that the filters take."""
    _left_out: Repeats = field(default_factory=Repeats)
    """Of the others."""
    _chosen: set[Sending] = field(default_factory=set)
    """Of `sent`, what was chosen here."""

    def choose(self, letter: Letter) -> Redriven | None:
        """What to send for this letter; None where it is left."""
        self.letters += 1
        passed = self._passed_over(letter)
        repeat = (self._repeats if passed is None else self._left_out).again(letter)
        if not repeat:
            self.seen_reasons[letter.reason] += 1
        found = passed or (Left.REPEAT if repeat else self._judge(letter))
        if isinstance(found, Left):
            self.left[found] += 1
            return None
        self.chosen[letter.reason] += 1
        return found

    def _passed_over(self, letter: Letter) -> Left | None:
        """What the filters say of it."""
        if self.reasons and letter.reason not in self.reasons:
            return Left.OTHER_REASON
        return Left.OLDER if self.since is not None and letter.time < self.since else None

    def _judge(self, letter: Letter) -> Redriven | Left:
        if letter.reason in NO_FIX and letter.reason not in self.reasons:
            return Left.NO_FIX
        if letter.original is None:
            return Left.NOT_OURS
        if letter.value is None:
            return Left.NO_PAYLOAD
        if letter.attempts >= MAX_ATTEMPTS:
            return Left.EXHAUSTED
        sending = Sending(letter.original, letter.attempts + 1)
        if sending in self.sent:
            return Left.REPEAT if sending in self._chosen else Left.SENT_BEFORE
        if self.most is not None and self.chosen.total() >= self.most:
            return Left.BEYOND_MAX
        self.sent.add(sending)
        self._chosen.add(sending)
        about = origin_headers(sending.source, letter.logged, sending.attempt)
        return Redriven(letter.reason, letter.key, letter.value, [*letter.headers, *about])
