"""The overview: per segment what the rolling scores say, what has changed, what drifts, and what is degraded now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from markupsafe import Markup

from consumer.case_store import CaseStoreError
from consumer.contrast_words import conclusion
from consumer.label import Verdict as Said
from consumer.pages import charts
from consumer.pages.addresses import Query
from consumer.pages.dead_letters import Counted
from consumer.pages.drift import DriftLine, SegmentDrift, drift_lines, drift_of
from consumer.pages.sources import Sources
from consumer.scorebook import Look
from metrics.answer import ALL, Segment
from metrics.changes import Change
from metrics.contrast import Part, Verdict
from metrics.courses import Course, courses
from metrics.exposition import Progress
from metrics.flags import FLAGGED_METRICS, MARGIN
from metrics.label_book import CorrectedReading, LabelCount
from metrics.outcome import Kind
from metrics.ranges import range_of
from metrics.rolling import Reading
from metrics.unscored_seen import Missed

USUAL_SECONDS = 3600.0
MOST_PARTS = 8
MOST_BELOW = 6
SILENT_SECONDS = 120.0
"""Without a score for so long it is said that none comes."""
LOST = (
    "Answers were flagged, and no case file is stored: if their Redis has lost its data, what was once read from the "
    "topic is not read again. Read it with: GROUNDWATCH__REDIS__CASES_URL= groundwatch cases list"
)
FEW = 30
"""Samples below which a rolling score says little."""


@dataclass(frozen=True, slots=True)
class Score:
    """One rolling score of a segment. `below`: its whole interval lies below the threshold."""

    metric: str
    reading: Reading
    threshold: float | None
    below: bool
    degraded: bool
    few: bool
    chart: Markup | None
    cases: str
    older: bool
    """Of a definition that a newer one has replaced."""
    corrected: CorrectedReading | None = None
    """By people's labels of audited answers."""
    labels: int = 0
    """So many of them can correct it."""


@dataclass(frozen=True, slots=True)
class SegmentPart:
    """`worst` puts the segments in order: the lowest distance of a score from its threshold."""

    segment: Segment
    name: str
    whole: bool
    scores: list[Score]
    refusal: float | None
    flagged: float | None
    cases: str
    worst: float
    drift: SegmentDrift


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """`because`: which labels explain it, in a line; empty until it was looked at. `parts`: what they moved by."""

    change: Change
    segment: str
    fell: bool
    cases: str
    because: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class MissedLine:
    missed: Missed
    segment: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """`shown`: there are windows to show. `notes`: what is degraded now, one line each."""

    at: float
    window: str
    windows: tuple[str, ...]
    state: str
    shown: bool
    notes: list[str]
    segments: list[SegmentPart]
    silent: list[str]
    changes: list[ChangeLine]
    drift: list[DriftLine]
    missed: list[MissedLine]
    dead_letters: Counted
    stored: int | None
    labels: Mapping[Said, int]
    drift_minimum: float
    """Effective samples that a comparison takes on either side."""


def overview(sources: Sources, window: str) -> Overview:
    """The overview over this window.

    Raises:
        KeyError: there is no such window.
    """
    windows = sources.settings.monitor.windows
    window = window or usual(windows)
    seconds = windows[window]
    progress = sources.progress()
    _, state = sources.ready()
    look = sources.looks.look(window)
    shown = progress is not None and progress.rebuilt
    dead_letters = sources.dead_letters()
    stored, labels, fault = _stored(sources)
    notes = list(_notes(progress, state, window, fault, dead_letters))
    if shown:
        notes += _silence(look)
    keys = sources.looks.book.segment_keys
    readings = sources.looks.book.drift() if shown else []
    drift = drift_lines(readings, {r.key.segment: segment_name(r.key.segment, keys) for r in readings})
    segments, silent = _segments(look, window, seconds, keys, sources, drift) if shown else ([], [])
    corrected, counts = sources.looks.book.corrected(look.readings, look.shares) if shown else ([], [])
    segments = [_with_labels(part, corrected, counts, window) for part in segments]
    notes = below_thresholds(segments) + notes
    if stored == 0 and any(part.flagged for part in segments):
        notes.append(LOST)
    notes += [
        f"{part.name}: {score.metric.replace('_', ' ')} is degraded, only {score.reading.coverage:.0%} of the answers "
        "that it applies to could be scored"
        for part in segments
        for score in part.scores
        if score.degraded and score.reading.coverage is not None
    ]
    return Overview(
        look.at,
        window,
        tuple(windows),
        state,
        shown,
        notes,
        segments,
        silent,
        [_change(change, keys) for change in reversed(look.changes)],
        drift,
        [
            MissedLine(missed, segment_name(missed.segment, keys), missed.kind is Kind.FAILED)
            for missed in sorted(look.missed, key=lambda m: (m.kind is not Kind.FAILED, -m.number))
        ],
        dead_letters,
        stored,
        labels,
        sources.settings.drift.minimum_samples,
    )


def usual(windows: Mapping[str, float]) -> str:
    """The window that is shown where none is asked for: the one nearest to an hour."""
    return min(windows, key=lambda name: abs(windows[name] - USUAL_SECONDS))


def segment_name(segment: Segment, keys: Sequence[str]) -> str:
    if all(value == ALL for value in segment):
        return "all segments"
    return ", ".join(f"{key} {value}" for key, value in zip(keys, segment, strict=True))


def _query(segment: Segment, keys: Sequence[str], since: str, flag: str = "") -> str:
    chosen = {key: value for key, value in zip(keys, segment, strict=True) if value != ALL}
    return Query(segment=chosen, since=since, flags=(flag,) if flag else ()).address()


def _notes(progress: Progress | None, state: str, window: str, fault: str, letters: Counted) -> list[str]:
    notes = []
    if progress is None or not progress.rebuilt:
        notes.append(f"No scores are shown yet: {state}.")
    elif (filled := progress.filled.get(window, 1.0)) < 0.995:
        notes.append(f"Of the last {window} only {filled:.0%} is read yet: the scores rest on that part.")
    if fault:
        notes.append(fault)
    if letters.fault:
        notes.append(f"How many events could not be read is not known: {letters.fault}.")
    return notes


def below_thresholds(segments: Sequence[SegmentPart]) -> list[str]:
    """A line for each score whose interval lies below its threshold, `MOST_BELOW` at the most and one for the rest."""
    lines = [_below(part, score) for part in segments for score in part.scores if score.below]
    left = len(lines) - MOST_BELOW
    return lines if left <= 0 else [*lines[:MOST_BELOW], f"{left} more scores are below their thresholds"]


def _below(part: SegmentPart, score: Score) -> str:
    reading = score.reading
    older = f" (definition {reading.definition})" if score.older else ""
    return (
        f"{part.name}: {score.metric.replace('_', ' ')}{older} is below its threshold {score.threshold:g}: "
        f"{reading.mean:.3f}, 95 % interval {reading.low:.3f} to {reading.high:.3f}, n = {reading.samples:,}"
    )


def _silence(look: Look) -> list[str]:
    """Windows stand still when nothing comes; that they do must be seen beside them."""
    if look.newest is None:
        return ["No score has come yet: no scorer works, or there are no events."]
    waited = look.at - look.newest
    if waited <= SILENT_SECONDS:
        return []
    return [
        f"No score has come for {_span(waited)}: the scorer is down or has stopped to get on, or there are no events. "
        "What stands below is from before."
    ]


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _stored(sources: Sources) -> tuple[int | None, Mapping[Said, int], str]:
    """How many cases and labels Redis holds, or why that is not known."""
    if sources.store is None:
        return None, {}, "Case files are not kept: redis.cases_url is not set."
    try:
        return sources.store.count(sources.now()), sources.store.label_counts(), ""
    except CaseStoreError as error:
        return None, {}, f"Case files cannot be read: {error}."


def _segments(
    look: Look, window: str, seconds: float, keys: Sequence[str], sources: Sources, drift: Sequence[DriftLine]
) -> tuple[list[SegmentPart], list[str]]:
    drawn = {(c.segment, c.metric, c.definition): c for c in courses(look.slices, look.at, seconds)}
    newest = {(metric, definition) for _, metric, definition in drawn}
    thresholds = {(t.segment, t.metric): t.value for t in look.thresholds}
    shares = {share.segment: share for share in look.shares if share.window == window}
    by_segment: dict[Segment, list[Reading]] = {}
    for reading in look.readings:
        if reading.window == window and (reading.samples or reading.coverage is not None):
            by_segment.setdefault(reading.segment, []).append(reading)
    minimum = sources.settings.monitor.coverage_minimum
    parts, silent = [], []
    for segment, share in shares.items():
        readings = by_segment.get(segment, [])
        name = segment_name(segment, keys)
        if share.refusal is None and not readings:
            silent.append(name)
            continue
        scores = [
            _score(r, thresholds.get((segment, r.metric)), drawn.get((segment, r.metric, r.definition)), keys, minimum,
                   window, (r.metric, r.definition) not in newest)
            for r in readings
        ]  # fmt: skip
        scores.sort(key=lambda s: (s.older, s.threshold is None, s.metric))
        parts.append(
            SegmentPart(
                segment,
                name,
                all(value == ALL for value in segment),
                scores,
                share.refusal,
                share.flagged,
                _query(segment, keys, window),
                min((s.reading.mean - s.threshold for s in scores if s.reading.mean and s.threshold), default=9.0),
                drift_of(drift, segment, window),
            )
        )
    parts.sort(key=lambda part: (not part.whole, part.worst))
    return parts, silent


def _with_labels(
    part: SegmentPart, corrected: Sequence[CorrectedReading], counts: Sequence[LabelCount], window: str
) -> SegmentPart:
    by_metric = {c.metric: c for c in corrected if c.segment == part.segment and c.window == window}
    numbers = {count.metric: count.labels for count in counts if count.segment == part.segment}
    return replace(
        part,
        scores=[
            score
            if score.older
            else replace(score, corrected=by_metric.get(score.metric), labels=numbers.get(score.metric, 0))
            for score in part.scores
        ],
    )


def _score(
    reading: Reading, threshold: float | None, drawn: Course | None, keys: Sequence[str], minimum: float, window: str,
    older: bool,
) -> Score:  # fmt: skip
    flag = f"{reading.metric}_low" if reading.metric in FLAGGED_METRICS else ""
    return Score(
        reading.metric,
        reading,
        threshold,
        threshold is not None and reading.high is not None and reading.high < threshold - MARGIN,
        reading.coverage is not None and reading.coverage < minimum,
        0 < reading.samples < FEW,
        None if drawn is None else _chart(drawn, threshold),
        _query(reading.segment, keys, window, flag if threshold is not None else ""),
        older,
    )


def _chart(drawn: Course, threshold: float | None) -> Markup | None:
    means = [point.mean for point in drawn.points if point.mean is not None]
    if not means:
        return None
    low, high = charts.bounds(drawn.points, threshold, range_of(drawn.metric))
    label = (
        f"{drawn.metric.replace('_', ' ')} over time: from {means[0]:.2f} to {means[-1]:.2f}, lowest {min(means):.2f}"
    )
    return charts.course(drawn.points, low, high, threshold, label)


def _change(change: Change, keys: Sequence[str]) -> ChangeLine:
    shift = change.shift
    chosen = {key: value for key, value in zip(keys, change.segment, strict=True) if value != ALL}
    query = Query(segment=chosen, since=iso(shift.start))
    contrast = change.contrast
    return ChangeLine(
        change,
        segment_name(change.segment, keys),
        shift.size < 0,
        query.address(),
        "" if contrast is None else conclusion(contrast),
        () if contrast is None else tuple(sorted(contrast.parts, key=_weight)[:MOST_PARTS]),
    )


def _weight(part: Part) -> tuple[bool, float]:
    """What explains the change comes first, then what adds most to it."""
    return part.verdict is not Verdict.EXPLAINS, -abs(part.part)


def iso(seconds: float) -> str:
    """To the minute, as an address has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%MZ")
