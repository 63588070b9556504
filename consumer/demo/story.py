"""What the demo has seen so far: readings over time, when each incident was seen, and the summary at the end.

No clock and no network in here: `Story.observe` is given the time and the readings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from consumer.demo.alerts import Alert, Alerts
from consumer.demo.readings import ALL, Counts, Key, Rolling, fell
from consumer.demo.script import EXPECTED, Fault, Scheduled, current, incidents
from metrics.ranges import SIMILARITY
from metrics.wasserstein import wasserstein

LEADING = "faithfulness"
BESIDE = ("topic_similarity", "question_context_similarity")
HISTORY = 600
GRACE_SECONDS = 10.0
"""So long after an incident its answers still count as seen: they are in the short window, and a busy machine lags."""
DISTANCE_ANSWERS = 30
"""Fewer answers have no histogram worth a distance."""


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read at one moment. `counts` None: not read. `distances`: see `readings.topic_distances`."""

    rolling: Mapping[Key, Rolling]
    counts: Counts | None = None
    distances: Mapping[float, float] = field(default_factory=dict)


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
    """Everything that the view shows, but the flagged answers. `distance`: topic distance, Wasserstein to calm."""

    scheduled: tuple[Scheduled, ...]
    elapsed: float
    window: str
    counts: Counts
    events_rate: float
    scored_rate: float
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]
    firing: tuple[Alert, ...]
    distance: float | None


@dataclass(slots=True)
class Seen:
    """What an incident showed."""

    at: float | None = None
    during: dict[Key, Rolling] = field(default_factory=dict)
    distance: float | None = None
    """The largest one while it lasted."""


class Story:
    """Collects readings and notices. A fall is seen where a short window lies below calm traffic beyond chance."""

    def __init__(
        self,
        scheduled: Sequence[Scheduled],
        windows: Mapping[str, float],
        segments: Sequence[str],
    ) -> None:
        """`windows` in seconds by name, the shortest first."""
        self._scheduled = tuple(scheduled)
        self.incidents = incidents(scheduled)
        names = list(windows)
        self._short, self._long = names[0], names[-1]
        self._short_seconds = windows[self._short]
        self._keys = [
            Key(LEADING, self._short, ALL),
            *(Key(LEADING, self._short, s) for s in segments),
            *(Key(metric, self._short, ALL) for metric in BESIDE),
        ]
        self._history: dict[Key, deque[float]] = {key: deque(maxlen=HISTORY) for key in self._keys}
        self._rates: deque[tuple[float, Counts]] = deque(maxlen=12)
        self._distances: deque[tuple[float, Mapping[float, float]]] = deque()
        self._calm_distances: Mapping[float, float] = {}
        self._distance: float | None = None
        self._calm_distance: float | None = None
        self._now: Mapping[Key, Rolling] = {}
        self._before: dict[Key, Rolling] = {}
        self._fallen: set[Key] = set()
        self._notes: list[Note] = []
        self._elapsed = 0.0
        self._act: Scheduled | None = None
        self._alerts = Alerts()
        self.counts = Counts()
        self.seen: dict[Fault, Seen] = {s.act.fault: Seen() for s in self.incidents}

    def observe(self, elapsed: float, read: Readings) -> list[Note]:
        """Take in one reading, `elapsed` seconds after traffic began; returns what is new."""
        known = len(self._notes)
        self._elapsed = elapsed
        act = current(self._scheduled, elapsed)
        if act is not self._act:
            self._act = act
            self._note(act.act.text, act.act.fault is not Fault.NONE)
        if read.counts is not None:
            self.counts = read.counts
            self._rates.append((elapsed, read.counts))
        self._now = read.rolling
        self._remember(act)
        self._compare(act)
        self._alert()
        self._measure_distance(act, read.distances)
        return self._notes[known:]

    def note(self, text: str) -> Note:
        """Add a note of somebody else's."""
        return self._note(text, False)

    def _note(self, text: str, alarm: bool) -> Note:
        self._notes.append(Note(self._elapsed, text, alarm))
        return self._notes[-1]

    def _remember(self, act: Scheduled) -> None:
        seen = self.seen.get(act.act.fault)
        for key in self._keys:
            if key in self._now:
                self._history[key].append(self._now[key].value)
                if seen is not None:
                    seen.during[key] = self._now[key]
            # The longest window is all of calm traffic, the steadiest thing to compare with.
            calm = self._now.get(Key(key.metric, self._long, key.segment))
            if calm is not None and self._is_first_calm(act):
                self._before[key] = calm

    def _is_first_calm(self, act: Scheduled) -> bool:
        return act.start < self.incidents[0].start

    def _compare(self, act: Scheduled) -> None:
        if self._is_first_calm(act):
            return
        for key in self._keys:
            before, now = self._before.get(key), self._now.get(key)
            if before is None or now is None:
                continue
            change = f"{key.metric}, {key.segment}: {before.value:.3f} -> {now.value:.3f}"
            if fell(before, now) and key not in self._fallen:
                self._fallen.add(key)
                self._note(f"drop seen: {change}", True)
            elif key in self._fallen and now.value >= before.low:
                self._fallen.remove(key)
                self._note(f"{key.metric}, {key.segment}: back at {now.value:.3f}", False)
        self._notice()

    def _notice(self) -> None:
        """An incident is seen where everything falls that should, and nothing that should stay."""
        for incident in self.incidents:
            fault = incident.act.fault
            if self.seen[fault].at is not None:
                continue
            if not incident.start <= self._elapsed < incident.end + GRACE_SECONDS:
                continue
            expected = EXPECTED[fault]
            low = {key.metric for key in self._fallen if key.segment == ALL and self._below(key)}
            if low.issuperset(expected.fall) and not low.intersection(expected.stay):
                self.seen[fault].at = self._elapsed
                after = self._elapsed - incident.start
                stays = f" ({' and '.join(expected.stay)} as before)" if expected.stay else ""
                self._note(f"{incident.act.name}: seen after {after:.1f} s by {', '.join(expected.fall)}{stays}", True)

    def _below(self, key: Key) -> bool:
        now = self._now.get(key)
        return now is not None and fell(self._before[key], now)

    def _alert(self) -> None:
        now = {key.metric: self._now[key] for key in self._keys if key.segment == ALL and key in self._now}
        calm = {key.metric: rolling for key, rolling in self._before.items() if key.segment == ALL}
        ready = self._act is not None and not self._is_first_calm(self._act)
        began, ended = self._alerts.observe(self._elapsed, now, calm if ready else {})
        for alert in began:
            self._note(f"ALERT {alert.name}: {alert.metric} {alert.value:.3f} is below {alert.threshold:.3f}", True)
        for alert in ended:
            self._note(f"alert {alert.name} ended", False)

    def _measure_distance(self, act: Scheduled, distances: Mapping[float, float]) -> None:
        if not distances:
            return
        if self._is_first_calm(act):
            self._calm_distances = distances
        self._distances.append((self._elapsed, distances))
        while len(self._distances) > 1 and self._distances[1][0] <= self._elapsed - self._short_seconds:
            self._distances.popleft()
        then = self._distances[0][1]
        recent = {bound: number - then.get(bound, 0.0) for bound, number in distances.items()}
        if min(max(recent.values()), max(self._calm_distances.values(), default=0.0)) < DISTANCE_ANSWERS:
            return
        self._distance = wasserstein(self._calm_distances, recent, 1.0 - SIMILARITY.high)
        seen = self.seen.get(act.act.fault)
        if seen is not None:
            seen.distance = max(seen.distance or 0.0, self._distance)
        elif self._is_first_calm(act):
            self._calm_distance = self._distance

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
            firing=self._alerts.firing,
            distance=self._distance,
        )

    def may_see(self, elapsed: float) -> bool:
        """Whether an incident that was not seen yet still may be."""
        return any(elapsed < incident.end + GRACE_SECONDS for incident in self.missed())

    def missed(self) -> tuple[Scheduled, ...]:
        """The incidents that were not seen."""
        return tuple(s for s in self.incidents if self.seen[s.act.fault].at is None)

    def summary(self) -> dict[str, Any]:
        """The JSON object of `--summary`, but for what the tally says of flags.

        `events` = `sampled_out` + `ignored` + `scored` + `unscored` + `dead_lettered` + `in_flight` (the last is 0
        unless the demo was interrupted). `incident_start` and `incident_seen_seconds` are those of the first incident,
        in seconds, the first since traffic began, the second since the incident began (null: not seen);
        `first_alert_seconds` is when the first alert after its start fired, since its start. `rolling_before` is the
        longest window at the end of calm traffic, `rolling_during` the shortest window at the end of the first
        incident.
        """
        counts = self.counts
        first = self.incidents[0]
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
            "incident_start": round(first.start, 1),
            "incident_seen_seconds": self._since(first, self.seen[first.act.fault].at),
            "first_alert_seconds": self._since(first, self._alerts.first_from(first.start)),
            "alerts": self._alerts.listed(),
            "rolling_before": _by_metric(self._before),
            "rolling_during": _by_metric(self.seen[first.act.fault].during),
            "topic_distance_calm": _rounded(self._calm_distance),
            "incidents": [self._incident(incident) for incident in self.incidents],
        }

    def _incident(self, incident: Scheduled) -> dict[str, Any]:
        seen = self.seen[incident.act.fault]
        return {
            "name": incident.act.name,
            "start": round(incident.start, 1),
            "end": round(incident.end, 1),
            "seen_seconds": self._since(incident, seen.at),
            "first_alert_seconds": self._since(incident, self._alerts.first_from(incident.start)),
            "rolling_during": _by_metric(seen.during),
            "topic_distance_wasserstein": _rounded(seen.distance),
        }

    @staticmethod
    def _since(incident: Scheduled, at: float | None) -> float | None:
        return None if at is None else round(at - incident.start, 1)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _by_metric(scores: Mapping[Key, Rolling]) -> dict[str, dict[str, dict[str, float]]]:
    result: dict[str, dict[str, dict[str, float]]] = {}
    for key, rolling in scores.items():
        result.setdefault(key.metric, {})[key.segment] = asdict(rolling)
    return result
