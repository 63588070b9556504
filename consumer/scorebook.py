"""The monitor's state: score records in, windows and counters out. It knows no Kafka client.

Live records advance windows, counters and histograms; records that are read back (they were counted by an earlier
process) go into the windows only.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from consumer.label import Label, LabelChange
from consumer.record import CountedRecord, RecordRejected, decode_counted
from consumer.settings import Settings
from metrics.answer import OTHER, Segment
from metrics.baseline import Baseline
from metrics.changes import Change, Changes
from metrics.contrast import Contrast
from metrics.counting import Counting
from metrics.dedup import Dedup, Seen
from metrics.drift_watch import DriftReading, DriftWatch
from metrics.label_book import CorrectedReading, LabelBook, LabelCount, LabelledAnswer, LabelledMetric
from metrics.rolling import Reading, Rolling, Shares, Slices, Spans, newest_definitions
from metrics.sketch_reservoir import Reservoirs, Sampled
from metrics.thresholds_seen import InForce, ThresholdsSeen
from metrics.unscored_seen import Missed, UnscoredSeen

log = logging.getLogger(__name__)

Logged = tuple[bytes | None, float]
"""Value of a record, and when it was appended (seconds since the epoch)."""

Restore = Callable[[Iterable[Logged]], None]

DAY = 86_400.0
DRIFT_SECONDS = 0.05
"""What one `attend` spends on drift."""
SKETCHES_AT_ONCE = 6
"""Windows of a segment whose sketches one `attend` looks at; a copy of them all would take 10 MB."""
LABEL_OUTCOMES = ("corrects", "not_audited", "other_run", "old", "taken_away")
"""What a label is good for."""
TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Look:
    """All that the windows say at one moment, for a page. `slices` and `missed` are of one window."""

    at: float
    readings: list[Reading]
    shares: list[Shares]
    slices: list[Slices]
    missed: list[Missed]
    thresholds: list[InForce]
    changes: tuple[Change, ...]
    newest: float | None
    """When the newest score was appended to the log, in seconds; None without any."""


class Scorebook:
    """Windows, counters and the ids seen lately, behind one lock: the agent and the rebuild write, a scrape reads."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float],
        baseline: Baseline | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`now` is wall-clock time; `clock` measures how long something takes."""
        self.segment_keys = tuple(settings.segments.allow)
        self._allowed = {key: (*values, OTHER) for key, values in settings.segments.allow.items()}
        self._known = frozenset(itertools.product(*(dict.fromkeys(v) for v in self._allowed.values())))
        self._windows = settings.monitor.windows
        self._future = settings.monitor.future_seconds
        self._horizon = settings.monitor.dedup_seconds
        self._now = now
        self._lock = threading.Lock()
        self._label_seconds = settings.labels.days * DAY
        self._corrected = frozenset(settings.labels.metrics)
        self.labels = LabelBook(self._label_seconds)
        segments = sorted(self._known)
        self._counting = Counting(segments, settings.segments.contrast)
        self._changes = Changes(segments, settings.changes.false_alarm_days * DAY)
        self._drift_windows = settings.drift.of(settings.monitor.windows)
        self._drift = DriftWatch(
            baseline, self.segment_keys, minimum_samples=settings.drift.minimum_samples, clock=clock
        )
        self._sketches = self._no_sketches()
        self._rolling = self._empty()
        self._dedup = Dedup(self._horizon)
        self._thresholds = ThresholdsSeen(sorted(self._known))
        self._unscored = UnscoredSeen()
        self._newest: float | None = None

    @contextmanager
    def opened(self) -> Iterator[tuple[Rolling, Counting]]:
        """Windows and counters, for reading; records wait meanwhile."""
        with self._lock:
            yield self._rolling, self._counting

    def thresholds(self) -> list[InForce]:
        """In force by the newest record of each segment."""
        with self._lock:
            return self._thresholds.read()

    def look(self, window: str) -> Look:
        """What there is now; records wait while it is copied.

        Raises:
            KeyError: there is no such window.
        """
        now = self._now()
        with self._lock:
            rolling = self._rolling
            readings, shares = rolling.read(now)
            return Look(
                now,
                readings,
                shares,
                rolling.slices(now, window),
                self._unscored.read(now, self._windows[window]),
                self._thresholds.read(),
                self._changes.recent(),
                self._newest,
            )

    def spans(self) -> list[Spans]:
        """The distributions of the longest window now; some milliseconds, in which records wait."""
        longest = max(self._windows, key=self._windows.__getitem__)
        with self._lock:
            return self._rolling.spans(self._now(), [longest])

    def reset(self) -> None:
        """Forget windows and ids: they are about to be read back, or belong to somebody else now. Counters stay."""
        with self._lock:
            self._rolling = self._empty()
            self._dedup = Dedup(self._horizon)
            self._changes.forget()
            self._sketches = self._no_sketches()
            self._thresholds = ThresholdsSeen(sorted(self._known))
            self._unscored = UnscoredSeen()
        self._newest = None
        self._drift.forget()

    def restored(self) -> None:
        """All that is to be read back was."""
        with self._lock:
            self._changes.learned()

    def attend(self) -> None:
        """Look for changes in what came lately, and bring a part of the drift up to date. Call every few seconds, from
        one thread; it takes up to a tenth of a second."""
        now = self._now()
        with self._lock:
            self._changes.keep(self._rolling.definitions)
            self._changes.flush()
            spans: list[Spans] = self._rolling.spans(now, self._drift_windows)
            wanted = self._drift.stalest(self._sketches.spans(), SKETCHES_AT_ONCE)
            sketches: list[Sampled] = list(self._sketches.read(now, wanted))
        self._drift.update(spans, sketches, now, DRIFT_SECONDS)

    def changes(self) -> tuple[Change, ...]:
        """The latest changes of level, oldest first."""
        with self._lock:
            return self._changes.recent()

    def recall(self, changes: Iterable[Change]) -> None:
        """Show changes that an earlier process found."""
        with self._lock:
            self._changes.recall(changes)

    def explain(self, change: Change, contrast: Contrast) -> None:
        """Keep with one of `changes` what explains it."""
        with self._lock:
            self._changes.explain(change, contrast)

    def drift(self) -> list[DriftReading]:
        """The latest comparisons."""
        return self._drift.readings()

    def change_counts(self) -> tuple[dict[tuple[str, Segment], int], dict[tuple[str, Segment], float]]:
        """By metric and segment: how many changes were found, and when the latest one was."""
        with self._lock:
            return dict(self._changes.totals), dict(self._changes.latest)

    def take_label(self, change: LabelChange) -> str:
        """Keep the label of an answer, if it can correct anything; which of `LABEL_OUTCOMES` it is."""
        label = change.label
        outcome = "taken_away" if label is None else self._use_of(label)
        self.labels.keep(change.id, self._labelled(label) if label is not None and outcome == "corrects" else None)
        return outcome

    def _use_of(self, label: Label) -> str:
        if label.audit_probability is None:
            return "not_audited"
        if label.run != "live":
            return "other_run"
        return "old" if label.event_time < self._now() - self._label_seconds else "corrects"

    def _labelled(self, label: Label) -> LabelledAnswer:
        audit = label.audit_probability or 1.0
        metrics = tuple(
            LabelledMetric(name, label.definitions.get(name, ""), score.value, max(score.probability * audit, TINY))
            for name, score in label.scores.items()
            if name in self._corrected
        )
        segment, good = self._admitted(label.segment), label.verdict == "good"
        return LabelledAnswer(label.event_time, segment, good, bool(label.flags), metrics)

    def corrected(
        self, readings: Sequence[Reading], shares: Sequence[Shares]
    ) -> tuple[list[CorrectedReading], list[LabelCount]]:
        """What labels make of the rolling scores, and how many labels there are; nothing without `readings`."""
        if not readings:
            return [], []
        with self._lock:
            newest = newest_definitions(self._rolling.definitions)
            longest = max(self._rolling.windows, key=lambda window: window.seconds).name
        now = self._now()
        flagged = {s.segment: s.flagged for s in shares if s.window == longest and s.flagged is not None}
        return self.labels.correct(readings, flagged, newest, now), self.labels.counts(newest, now)

    def count(self, raw: bytes | None, appended: float | None) -> None:
        """Count one live record. Never raises for the sake of a record: what is wrong with it is counted instead.

        `appended`: the broker's timestamp (seconds since the epoch), where it has one.
        """
        with self._lock:
            try:
                outcome = self._count(raw, appended)
            except RecordRejected as rejected:
                log.warning("a score record was not counted: %s", rejected)
                outcome = rejected.outcome
            except Exception:
                log.exception("a score record was not counted")
                outcome = "undecodable"
            self._counting.outcomes[outcome] += 1

    def restore_recent(self) -> Restore:
        """Takes records that an earlier process counted, the latest ones, in order; their ids are remembered."""
        return lambda records: self._restore(records, self._is_new)

    def restore_older(self) -> Restore:
        """Takes records from before those that `restore_recent` took, in order."""
        older = Dedup(self._horizon)

        def is_new(record: CountedRecord, appended: float) -> bool:
            identity = record.id, record.content_hash, appended
            return not self._dedup.knows(*identity) and older.see(*identity) is not Seen.DUPLICATE

        return lambda records: self._restore(records, is_new)

    def _count(self, raw: bytes | None, appended: float | None) -> str:
        record = decode_counted(raw)
        if record.run != "live":
            return "other_run"
        now = self._now()
        rolling, counting = self._rolling, self._counting
        if record.event_time < now - rolling.longest:
            return "late"
        arrival = now if appended is None else min(appended, now)
        self._newest = max(arrival, self._newest or arrival)
        seen = self._dedup.see(record.id, record.content_hash, arrival)
        if seen is Seen.DUPLICATE:
            return "duplicate"
        segment = self._segment(record.segment)
        at = min(record.event_time, arrival)
        added = rolling.add(record, segment, at, now)
        counting.nonfinite += added.nonfinite
        counting.overflow += added.overflow
        counting.add(record, segment, rolling.definitions, at)
        self._changes.add(record, segment, rolling.definitions, at)
        self._sample(record, segment, at, now)
        self._thresholds.note(segment, at, record.thresholds)
        self._unscored.note(segment, at, record.unscored)
        if seen is Seen.CONFLICT:
            return "conflict"
        return "future" if record.event_time > arrival + self._future else "counted"

    def _restore(self, records: Iterable[Logged], is_new: Callable[[CountedRecord, float], bool]) -> None:
        now = self._now()
        with self._lock:
            rolling, counting = self._rolling, self._counting
            oldest = now - rolling.longest
            for raw, appended in records:
                try:
                    record = decode_counted(raw)
                    arrival = min(appended, now)
                    at = min(record.event_time, arrival)
                    if record.run != "live" or at < oldest or not is_new(record, arrival):
                        continue
                    self._newest = max(arrival, self._newest or arrival)
                    segment = self._segment(record.segment)
                    rolling.add(record, segment, at, now)
                    counting.note(record, segment, at)
                    self._changes.learn(record, segment, rolling.definitions, at)
                    self._sample(record, segment, at, now)
                    self._thresholds.note(segment, at, record.thresholds)
                    self._unscored.note(segment, at, record.unscored)
                except RecordRejected:
                    # It was counted and logged when it was live.
                    continue
                except Exception:
                    log.exception("a score record was not read back")

    def _sample(self, record: CountedRecord, segment: Segment, at: float, now: float) -> None:
        if record.sketch:
            embedder = record.versions.get("embedder", "")
            self._sketches.add(record.id, record.sketch, record.probability, embedder, segment, at, now)

    def _is_new(self, record: CountedRecord, appended: float) -> bool:
        return self._dedup.see(record.id, record.content_hash, appended) is not Seen.DUPLICATE

    def _segment(self, labels: Mapping[str, str]) -> Segment:
        """The values of the segment keys; what is not on the allow-list is `other`, and counted."""
        segment = tuple([labels.get(key, OTHER) for key in self.segment_keys])
        if segment in self._known:
            return segment
        self._counting.overflow += 1
        return self._admitted(labels)

    def _admitted(self, labels: Mapping[str, str]) -> Segment:
        values = [(key, labels.get(key, OTHER)) for key in self.segment_keys]
        return tuple([value if value in self._allowed[key] else OTHER for key, value in values])

    def _empty(self) -> Rolling:
        return Rolling(self._windows, sorted(self._known))

    def _no_sketches(self) -> Reservoirs:
        return Reservoirs({name: self._windows[name] for name in self._drift_windows}, sorted(self._known))
