"""What the demo has seen so far: readings over time, when each incident was seen, and the summary at the end.

No clock and no network in here: `Story.observe` is given the time and the readings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from consumer.demo.readings import ALL, Counts, Key, Rolling, fell
from consumer.demo.script import Fault, Scheduled, current, first_incident

WATCHED = "topic_similarity"
BESIDE = "question_context_similarity"
HISTORY = 600


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the view: a rolling score in the short window, its past, and whether it lies below calm traffic."""

    metric: str
    segment: str
    now: Rolling | None
    history: tuple[float, ...]
    fallen: bool


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened, `at` seconds after traffic began."""

    at: float
    text: str
    alarm: bool


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the view shows."""

    scheduled: tuple[Scheduled, ...]
    elapsed: float
    window: str
    counts: Counts
    events_rate: float
    scored_rate: float
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]


class Story:
    """Collects readings and notices. A fall is seen where a short window lies below calm traffic beyond chance."""

    def __init__(
        self,
        scheduled: Sequence[Scheduled],
        windows: Sequence[str],
        segments: Sequence[str],
    ) -> None:
        """`windows` by length, the shortest first."""
        self._scheduled = tuple(scheduled)
        self._incident = first_incident(scheduled)
        self._short, self._long = windows[0], windows[-1]
        self._keys = [
            Key(WATCHED, self._short, ALL),
            *(Key(WATCHED, self._short, s) for s in segments),
            Key(BESIDE, self._short, ALL),
        ]
        self._history: dict[Key, deque[float]] = {key: deque(maxlen=HISTORY) for key in self._keys}
        self._rates: deque[tuple[float, Counts]] = deque(maxlen=12)
        self._now: Mapping[Key, Rolling] = {}
        self._before: dict[Key, Rolling] = {}
        self._during: dict[Key, Rolling] = {}
        self._fallen: set[Key] = set()
        self._notes: list[Note] = []
        self._act: Scheduled | None = None
        self._elapsed = 0.0
        self.counts = Counts()
        self.seen_at: float | None = None
        self.incident_state: State | None = None
        """The newest state of the incident, for a picture."""

    def observe(self, elapsed: float, rolling: Mapping[Key, Rolling], counts: Counts | None) -> list[Note]:
        """Take in one reading, `elapsed` seconds after traffic began; returns what is new. `counts` None: not read."""
        known = len(self._notes)
        self._elapsed = elapsed
        act = current(self._scheduled, elapsed)
        if act is not self._act:
            self._act = act
            self._notes.append(Note(elapsed, act.act.text, act.act.fault is not Fault.NONE))
        if counts is not None:
            self.counts = counts
            self._rates.append((elapsed, counts))
        self._now = rolling
        self._remember(act, rolling)
        self._compare(act, rolling)
        if act is self._incident:
            self.incident_state = self.state()
        return self._notes[known:]

    def _remember(self, act: Scheduled, rolling: Mapping[Key, Rolling]) -> None:
        for key in self._keys:
            if key in rolling:
                self._history[key].append(rolling[key].value)
                if act is self._incident:
                    self._during[key] = rolling[key]
            # The longest window is all of calm traffic, the steadiest thing to compare with.
            calm = rolling.get(Key(key.metric, self._long, key.segment))
            if calm is not None and act.start < self._incident.start:
                self._before[key] = calm

    def _compare(self, act: Scheduled, rolling: Mapping[Key, Rolling]) -> None:
        if act.start < self._incident.start:
            return
        for key in self._keys:
            before, now = self._before.get(key), rolling.get(key)
            if before is None or now is None:
                continue
            if fell(before, now) and key not in self._fallen:
                self._fallen.add(key)
                self._fall_noted(act, key, before, now)
            elif key in self._fallen and now.value >= before.low:
                self._fallen.remove(key)
                self._notes.append(Note(self._elapsed, f"{key.metric}, {key.segment}: back at {now.value:.3f}", False))

    def _fall_noted(self, act: Scheduled, key: Key, before: Rolling, now: Rolling) -> None:
        after = self._elapsed - self._incident.start
        text = f"drop seen {after:.1f} s after the incident began: {key.metric}, {key.segment}: "
        text += f"{before.value:.3f} -> {now.value:.3f}"
        self._notes.append(Note(self._elapsed, text, True))
        if self.seen_at is None and key.metric == WATCHED and act is self._incident:
            self.seen_at = self._elapsed

    def state(self) -> State:
        """What there is to show now."""
        events_rate = scored_rate = 0.0
        if len(self._rates) > 1:
            (first, then), (last, now) = self._rates[0], self._rates[-1]
            events_rate = (now.events - then.events) / max(last - first, 1e-9)
            scored_rate = (now.scored - then.scored) / max(last - first, 1e-9)
        return State(
            scheduled=self._scheduled,
            elapsed=self._elapsed,
            window=self._short,
            counts=self.counts,
            events_rate=events_rate,
            scored_rate=scored_rate,
            rows=tuple(
                Row(key.metric, key.segment, self._now.get(key), tuple(self._history[key]), key in self._fallen)
                for key in self._keys
            ),
            notes=tuple(self._notes),
        )

    def summary(self) -> dict[str, Any]:
        """The JSON object of `--summary`.

        `events` = `sampled_out` + `ignored` + `scored` + `unscored` + `dead_lettered` + `in_flight` (the last is 0
        unless the demo was interrupted). `incident_start` and `incident_seen_seconds` are in seconds, the first since
        traffic began, the second since the incident began (null: not seen). `before` is the longest window at the end
        of calm traffic, `during` the shortest window at the end of the incident.
        """
        counts = self.counts
        return {
            "events": counts.events,
            "sampled_out": counts.sampled_out,
            "ignored": counts.ignored,
            "scored": counts.scored,
            "unscored": counts.unscored,
            "dead_lettered": counts.dead_lettered,
            "in_flight": counts.in_flight,
            "dead_letter_reasons": dict(counts.dead_letter_reasons),
            "seconds": round(self._elapsed, 1),
            "incident_start": self._incident.start,
            "incident_seen_seconds": (None if self.seen_at is None else round(self.seen_at - self._incident.start, 1)),
            "rolling_before": _by_metric(self._before),
            "rolling_during": _by_metric(self._during),
        }


def _by_metric(scores: Mapping[Key, Rolling]) -> dict[str, dict[str, dict[str, float]]]:
    result: dict[str, dict[str, dict[str, float]]] = {}
    for key, rolling in scores.items():
        result.setdefault(key.metric, {})[key.segment] = asdict(rolling)
    return result
