"""From an evaluated event to what is written: its score record, and a case file where it is flagged or audited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumer.case_building import build_case
from consumer.case_file import CaseFile, encode_case, smaller_cases
from consumer.decoding.reasons import Repair
from consumer.intake import Sampled
from consumer.outputs import Output
from consumer.record import ScoreRecord, encode_record
from consumer.record_building import build_record
from consumer.sampling import unit_interval
from consumer.settings import Settings, Topics
from consumer.thresholds import ThresholdTable
from metrics.evaluation import Evaluation

HOUR = 3600.0
AUDIT_SALT = "audit/"
"""Makes the audit independent of the sample: an audited share of what was sampled, not its lowest part."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one event; `case` where it is flagged or audited."""

    record: ScoreRecord
    case: CaseFile | None
    repairs: tuple[str, ...] = ()
    """What was left out on the way: `Repair.MANY_STATEMENTS`."""


def outputs_of(result: Result, topics: Topics) -> tuple[Output, ...]:
    """What the scorer writes of it: the record, and the case file in ever smaller forms."""
    key = result.record.id.encode()
    scores = Output(topics.scores, key, encode_record(result.record))
    case = result.case
    if case is None:
        return (scores,)
    smaller = (Output(topics.flagged, key, encode_case(form)) for form in smaller_cases(case))
    return scores, Output(topics.flagged, key, encode_case(case), smaller=smaller)


class Audit:
    """Which scored events get a case file whatever their score: a share by hash, at most so many an hour."""

    def __init__(self, share: float, salt: str, per_hour: int) -> None:
        self.share = share
        self._salt = AUDIT_SALT + salt
        self._per_hour = per_hour
        self._hour = -1
        self._taken = 0
        self._lock = threading.Lock()

    def chooses(self, event_id: str, now: float) -> bool:
        """`now` in seconds since the epoch. Beyond the hourly limit nothing more is chosen until the next hour."""
        if unit_interval(self._salt, event_id.encode("utf-8", "surrogatepass")) >= self.share:
            return False
        hour = int(now // HOUR)
        with self._lock:
            if hour != self._hour:
                self._hour, self._taken = hour, 0
            self._taken += 1
            return self._taken <= self._per_hour


class Results:
    """Builds records and case files, for the stream and for `score-file` alike. Safe for threads."""

    def __init__(
        self,
        settings: Settings,
        thresholds: ThresholdTable,
        definitions: Mapping[str, str],
        versions: Mapping[str, str],
        wall_clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._definitions = definitions
        self._versions = versions
        self._wall_clock = wall_clock
        self._thresholds = thresholds
        self._audit = Audit(settings.cases.audit_share, settings.sampling.salt, settings.cases.audit_per_hour)

    def of(
        self, sampled: Sampled, evaluation: Evaluation, metric_probabilities: Mapping[str, float] | None = None
    ) -> Result:
        """The record of an evaluated event, and its case file where it is flagged or audited.

        `metric_probabilities`: the inclusion probability of metrics that were thinned further than the event."""
        now = self._wall_clock()
        record = build_record(
            sampled.event,
            evaluation,
            probability=sampled.probability,
            sampled_by=sampled.sampled_by,
            source=sampled.source,
            segment=sampled.segment,
            labels=sampled.labels,
            definitions=self._definitions,
            versions=self._versions,
            run=self._settings.scorer.run,
            scored_time=now,
            thresholds=self._thresholds.of(sampled.segment),
            metric_probabilities=metric_probabilities,
        )
        audited = bool(record.scores) and self._audit.chooses(record.id, now)
        why = (("flagged",) if record.flags else ()) + (("audit",) if audited else ())
        judged = evaluation.judged
        repairs = (Repair.MANY_STATEMENTS.value,) if judged is not None and judged.left_out else ()
        if not why:
            return Result(record, None, repairs)
        audit_probability = self._audit.share if audited else None
        return Result(record, build_case(sampled.event, evaluation, record, why, audit_probability), repairs)
