"""What the workers' /metrics say: rolling scores of the monitor, counts of the scorer, and whether a score fell."""

from __future__ import annotations

import math
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

ALL = "all"
FALL_Z = 3.5
"""How many standard errors of the difference a fall must measure: chance alone gives one in some 4,000 looks."""
FALL_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class Rolling:
    """One rolling score: the weighted mean with its 95 % interval."""

    value: float
    low: float
    high: float
    samples: int

    @property
    def standard_error(self) -> float:
        return (self.high - self.low) / (2 * 1.96)


@dataclass(frozen=True, slots=True)
class Key:
    """Which rolling score: `segment` is `all`, or `app/lang`."""

    metric: str
    window: str
    segment: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The scorer's counters, summed over partitions."""

    events: int = 0
    sampled_out: int = 0
    ignored: int = 0
    scored: int = 0
    unscored: int = 0
    dead_lettered: int = 0
    dead_letter_reasons: Mapping[str, int] = field(default_factory=dict)
    cache_look_ups: int = 0
    """Vectors asked for; each is looked for in memory first, then in Redis."""
    cache_hits: int = 0

    @property
    def in_flight(self) -> int:
        """Read and not yet finished."""
        return self.events - (self.sampled_out + self.ignored + self.scored + self.unscored + self.dead_lettered)


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def scrape(address: str, timeout: float = 2.0) -> list[Sample] | None:
    """All samples of `http://ADDRESS/metrics`; None where nobody answers in `timeout` seconds."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=timeout) as reply:
            text = reply.read().decode("utf-8")
    except (OSError, urllib.error.URLError):
        return None
    return [
        Sample(sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def answers(address: str, path: str, timeout: float = 1.0) -> bool:
    """Whether `http://ADDRESS/PATH` answers 200."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=timeout) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def rolling_scores(samples: Iterable[Sample]) -> dict[Key, Rolling]:
    """The monitor's rolling scores; a score without interval or samples is left out."""
    found: dict[Key, dict[str, float]] = {}
    names = {
        "groundwatch_rolling_score": "value",
        "groundwatch_rolling_score_low": "low",
        "groundwatch_rolling_score_high": "high",
        "groundwatch_rolling_samples": "samples",
    }
    for sample in samples:
        part = names.get(sample.name)
        if part is not None and math.isfinite(sample.value):
            key = Key(sample.labels["metric"], sample.labels["window"], segment_of(sample.labels))
            found.setdefault(key, {})[part] = sample.value
    return {
        key: Rolling(parts["value"], parts["low"], parts["high"], int(parts["samples"]))
        for key, parts in found.items()
        if len(parts) == len(names)
    }


def segment_of(labels: Mapping[str, str]) -> str:
    """`all`, or `app/lang`."""
    return ALL if labels.get("app") == ALL else f"{labels.get('app', '')}/{labels.get('lang', '')}"


def topic_distances(samples: Iterable[Sample]) -> dict[float, float]:
    """The monitor's histogram of topic distance over all segments: answers by upper bound, cumulative."""
    found: dict[float, float] = {}
    for sample in samples:
        labels = sample.labels
        if sample.name != "groundwatch_score_bucket" or segment_of(labels) == ALL:
            continue
        if labels["metric"] == "topic_distance":
            bound = float(labels["le"])
            found[bound] = found.get(bound, 0.0) + sample.value
    return found


def scorer_counts(samples: Iterable[Sample]) -> Counts:
    """The scorer's counters of design invariant 3, summed over topics and partitions."""
    totals: dict[str, int] = {}
    reasons: dict[str, int] = {}
    events = look_ups = hits = 0
    for sample in samples:
        count = int(sample.value) if math.isfinite(sample.value) else 0
        if sample.name == "groundwatch_events_in_total":
            events += count
        elif sample.name == "groundwatch_events_total":
            outcome = sample.labels["outcome"]
            totals[outcome] = totals.get(outcome, 0) + count
        elif sample.name == "groundwatch_deadletters_total" and count:
            reasons[sample.labels["reason"]] = reasons.get(sample.labels["reason"], 0) + count
        elif sample.name == "groundwatch_cache_requests_total":
            hit = sample.labels["result"] == "hit"
            hits += count * hit
            look_ups += count * (
                sample.labels["cache"] == "embedding_memory" and (hit or sample.labels["result"] == "miss")
            )
    return Counts(
        events=events,
        sampled_out=totals.get("sampled_out", 0),
        ignored=totals.get("ignored", 0),
        scored=totals.get("scored", 0),
        unscored=totals.get("unscored", 0),
        dead_lettered=totals.get("dead_lettered", 0),
        dead_letter_reasons=reasons,
        cache_look_ups=look_ups,
        cache_hits=hits,
    )


def fell(before: Rolling, now: Rolling) -> bool:
    """Whether `now` lies below `before` by more than chance explains.

    The difference of two means is compared with its standard error, both taken from the 95 % intervals; fewer than 20
    samples on either side never count as a fall.
    """
    if min(before.samples, now.samples) < FALL_SAMPLES:
        return False
    error = math.hypot(before.standard_error, now.standard_error)
    return now.value < before.value - FALL_Z * error
