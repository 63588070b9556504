"""Windows and counters as Prometheus families (names and labels: docs/metrics.md). Values are read at a scrape."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from metrics.counting import OUTCOMES, Counting, Example, Tally
from metrics.label_names import label_name
from metrics.ranges import counted_name
from metrics.rolling import Definition, Reading, Shares
from metrics.thresholds_seen import InForce

log = logging.getLogger(__name__)

PREFIX = "groundwatch_"

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_LABEL_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the monitor is. `filled`: by window, the share of its span that has been read, in [0, 1]."""

    active: bool
    rebuilt: bool
    filled: Mapping[str, float]
    coverage_minimum: float


@dataclass(frozen=True, slots=True)
class Rolled:
    """What the windows say at the time of a scrape."""

    readings: Sequence[Reading]
    shares: Sequence[Shares]


def label_value(value: str) -> str:
    """A label value that no exposition format can stumble over: no controls, no lone surrogates, at most 200 long."""
    return _UNSAFE.sub("\ufffd", value)[:MAX_LABEL_CHARACTERS]


class GuardedCollector(Collector):
    """Families made at every scrape; where that fails, those of the last scrape, and the failure is counted.

    One collector that raises would otherwise cost the whole of /metrics.
    """

    def __init__(self, make: Callable[[], Iterable[Metric]]) -> None:
        self._make = make
        self._last: list[Metric] = []
        self._errors = 0

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        try:
            self._last = list(self._make())
        except Exception:
            self._errors += 1
            log.exception("metrics could not be read; the last values are shown")
        yield from self._last
        errors = CounterMetricFamily(f"{PREFIX}exposition_errors", "Scrapes that were answered with older values.")
        errors.add_metric([], self._errors)
        yield errors


class Exposition:
    """Writes families whose series carry the segment labels `segment_keys`."""

    def __init__(self, segment_keys: Sequence[str], version: str) -> None:
        self._keys = [label_name(key) for key in segment_keys]
        self._version = version

    def rolling(self, rolled: Rolled, progress: Progress) -> Iterator[Metric]:
        """The gauges of the windows. A window without a score has `rolling_samples` 0 and nothing else."""
        labels = ["metric", "window", "definition", *self._keys]

        def gauge(name: str, text: str, names: list[str]) -> GaugeMetricFamily:
            return GaugeMetricFamily(PREFIX + name, text, labels=names)

        score = gauge("rolling_score", "Weighted mean of the scores in the window.", labels)
        low = gauge("rolling_score_low", "Lower end of the 95 % confidence interval of rolling_score.", labels)
        high = gauge("rolling_score_high", "Upper end of the 95 % confidence interval of rolling_score.", labels)
        p10 = gauge("rolling_score_p10", "Weighted 10th percentile of the scores in the window.", labels)
        samples = gauge("rolling_samples", "Scores in the window.", labels)
        effective = gauge("rolling_effective_samples", "Scores in the window, less what unequal weights cost.", labels)
        coverage = gauge("rolling_coverage_ratio", "Scored / (scored + failed), weighted, in the window.", labels)
        degraded = gauge("rolling_degraded", "1 where coverage is below monitor.coverage_minimum.", labels)
        for reading in rolled.readings:
            values = [reading.metric, reading.window, reading.definition, *reading.segment]
            samples.add_metric(values, reading.samples)
            _add(coverage, values, reading.coverage)
            if reading.coverage is not None:
                degraded.add_metric(values, float(reading.coverage < progress.coverage_minimum))
            if reading.samples:
                _add(effective, values, reading.effective)
            _add(score, values, reading.mean)
            _add(low, values, reading.low)
            _add(high, values, reading.high)
            _add(p10, values, reading.p10)
        yield from (score, low, high, p10, samples, effective, coverage, degraded)

        labels = ["window", *self._keys]
        refusal = gauge("rolling_refusal_ratio", "Weighted share of refusals among the answers of the window.", labels)
        flagged = gauge("rolling_flagged_ratio", "Weighted share of flagged answers in the window.", labels)
        filled = gauge("window_filled_ratio", "Share of the window's span that has been read.", labels)
        for share in rolled.shares:
            values = [share.window, *share.segment]
            _add(refusal, values, share.refusal)
            _add(flagged, values, share.flagged)
            _add(filled, values, progress.filled.get(share.window))
        yield from (refusal, flagged, filled)

    def thresholds(self, in_force: Iterable[InForce]) -> Iterator[Metric]:
        """A line to draw beside the scores."""
        family = GaugeMetricFamily(
            f"{PREFIX}threshold", "A score below it is flagged; of the newest record.", labels=["metric", *self._keys]
        )
        for threshold in in_force:
            family.add_metric([threshold.metric, *threshold.segment], threshold.value)
        yield family

    def progress(self, progress: Progress) -> Iterator[Metric]:
        """Whether this monitor owns the score topic, and has read it back."""
        yield _single_gauge("rebuild_complete", "1 once the windows have been read back.", float(progress.rebuilt))
        yield _single_gauge("monitor_active", "1 while the score topic is assigned here.", float(progress.active))
        build = GaugeMetricFamily(f"{PREFIX}build_info", "Version in force.", labels=["version"])
        build.add_metric([label_value(self._version)], 1.0)
        yield build

    def counters(self, counting: Counting) -> Iterator[Metric]:
        """Everything that only grows."""
        read = CounterMetricFamily(
            f"{PREFIX}scores_read", "Score records read, by what became of them.", labels=["outcome"]
        )
        for outcome in OUTCOMES:
            read.add_metric([outcome], counting.outcomes[outcome])
        yield read
        yield _single_counter(
            "label_overflow", "Names and label values over the caps or outside the lists.", counting.overflow
        )
        yield _single_counter("nonfinite", "Values outside the range of their metric, left out.", counting.nonfinite)
        yield from self._scores(counting)
        yield from self._answers(counting)

    def _scores(self, counting: Counting) -> Iterator[Metric]:
        labels = ["metric", "definition", *self._keys]
        score = HistogramMetricFamily(
            f"{PREFIX}score", "Scores; of a similarity, the distance 1 - score.", labels=labels
        )
        weighted = CounterMetricFamily(
            f"{PREFIX}score_weighted_sum", "Sum of score / inclusion probability.", labels=labels
        )
        weight = CounterMetricFamily(f"{PREFIX}score_weight", "Sum of 1 / inclusion probability.", labels=labels)
        for (segment, metric, definition), tally in counting.scores.items():
            values = [counted_name(metric), definition, *segment]
            _add_histogram(score, values, tally)
            weighted.add_metric(values, tally.weighted_sum)
            weight.add_metric(values, tally.weight)
        yield from (score, weighted, weight)

    def _answers(self, counting: Counting) -> Iterator[Metric]:
        keys = self._keys

        def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
            return CounterMetricFamily(PREFIX + name, text, labels=[*labels, *keys])

        answers = counter("answers_weight", "Sum of 1 / inclusion probability over answers.")
        flagged_answers = counter("flagged_answers_weight", "Sum of 1 / inclusion probability over flagged answers.")
        refusals = counter("refusals", "Answers that refuse or claim nothing.")
        evasive = counter("evasive", "Answers that avoid the question, as an LLM judge sees it.")
        conflicts = counter(
            "statement_conflicts",
            "Statements that one passage supports and another contradicts, as an LLM judge sees it.",
        )
        statements = counter("statements", "Statements by verdict.", "verdict")
        flagged = counter("flagged", "Flags by what is at fault.", "flag", "fault")
        changes = counter("dimension_changes", "New values seen of a contrast dimension.", "dimension")
        last = GaugeMetricFamily(
            f"{PREFIX}last_answer_timestamp_seconds", "Time of the latest answer counted.", labels=keys
        )
        per_answer = HistogramMetricFamily(f"{PREFIX}statements_per_answer", "Statements of an answer.", labels=keys)
        for segment, counts in counting.segments.items():
            values = list(segment)
            answers.add_metric(values, counts.answers_weight)
            flagged_answers.add_metric(values, counts.flagged_weight)
            refusals.add_metric(values, counts.refusals)
            evasive.add_metric(values, counts.evasive)
            conflicts.add_metric(values, counts.conflicts)
            for verdict, number in counts.verdicts.items():
                statements.add_metric([verdict, *values], number)
            for (flag, fault), (number, example) in counts.flagged.items():
                flagged.add_metric([flag, fault, *values], number, exemplar=_exemplar(example))
            for dimension, number in counts.changes.items():
                changes.add_metric([label_value(dimension), *values], number)
            if counts.last_at:
                last.add_metric(values, counts.last_at)
            _add_histogram(per_answer, values, counts.statements)
        yield from (answers, flagged_answers, refusals, evasive)
        yield from (statements, conflicts, per_answer, flagged, changes, last)


def definition_info(definitions: Mapping[str, Mapping[str, Definition]]) -> Metric:
    """What each definition stands for."""
    parts = ["embedder", "judge", "prompts"]
    info = GaugeMetricFamily(
        f"{PREFIX}definition_info", "What a definition stands for.", labels=["metric", "definition", *parts]
    )
    for metric, known in definitions.items():
        for name, definition in known.items():
            versions = [label_value(definition.versions.get(part, "")) for part in parts]
            info.add_metric([metric, name, *versions], 1.0)
    return info


def definition_since(definitions: Mapping[str, Mapping[str, Definition]]) -> Metric:
    """Since when each definition is seen: alert rules follow the newest of each metric."""
    since = GaugeMetricFamily(
        f"{PREFIX}definition_since_timestamp_seconds",
        "Time of the earliest answer known of this definition.",
        labels=["metric", "definition"],
    )
    for metric, known in definitions.items():
        for name, definition in known.items():
            since.add_metric([metric, name], definition.first)
    return since


def _add(family: GaugeMetricFamily, labels: Sequence[str], value: float | None) -> None:
    """Only a finite value ever becomes a series."""
    if value is not None and math.isfinite(value):
        family.add_metric(labels, value)


def _single_gauge(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text)
    family.add_metric([], value)
    return family


def _single_counter(name: str, text: str, value: float) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text)
    family.add_metric([], value)
    return family


def _add_histogram(family: HistogramMetricFamily, labels: Sequence[str], tally: Tally) -> None:
    buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    passed = 0
    for bound, number, example in zip((*tally.bounds, math.inf), tally.counts, tally.examples, strict=True):
        passed += number
        name = "+Inf" if math.isinf(bound) else str(bound)
        buckets.append((name, passed) if example is None else (name, passed, _exemplar(example)))
    family.add_metric(labels, buckets, tally.sum)


def _exemplar(example: Example) -> Exemplar:
    return Exemplar({example.label: example.name}, example.value, example.at)
