"""Drift and changes as Prometheus families (names and labels: docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from metrics.answer import Segment
from metrics.drift_watch import DriftReading
from metrics.exposition import PREFIX
from metrics.label_names import label_name


def drift_families(readings: Iterable[DriftReading], segment_keys: Sequence[str]) -> Iterator[Metric]:
    """The gauges `drift`, `drift_null_high` and the two counts of samples behind them."""
    keys = [label_name(key) for key in segment_keys]
    labels = ["metric", "statistic", "reference", "window", *keys]
    value = GaugeMetricFamily(
        f"{PREFIX}drift", "Distance between the distribution in the window and the reference.", labels=labels
    )
    high = GaugeMetricFamily(
        f"{PREFIX}drift_null_high", "What drift stays under in 99 of 100 cases where nothing drifts.", labels=labels
    )
    labels = ["metric", "reference", "window", *keys]
    recent = GaugeMetricFamily(
        f"{PREFIX}drift_samples", "Effective samples in the window that drift compares.", labels=labels
    )
    reference = GaugeMetricFamily(
        f"{PREFIX}drift_reference_samples", "Effective samples of the reference that drift compares.", labels=labels
    )
    for reading in readings:
        what, name, window, segment = reading.key
        for statistic, distance in reading.values.items():
            value.add_metric([what, statistic, name, window, *segment], distance)
            high.add_metric([what, statistic, name, window, *segment], reading.null_high[statistic])
        recent.add_metric([what, name, window, *segment], reading.recent)
        reference.add_metric([what, name, window, *segment], reading.reference)
    yield from (value, high, recent, reference)


def change_families(
    totals: Mapping[tuple[str, Segment], int],
    latest: Mapping[tuple[str, Segment], float],
    segment_keys: Sequence[str],
) -> Iterator[Metric]:
    """`changes_total` from 0 on for every metric and segment, and the time of the latest change where there was one."""
    labels = ["metric", *(label_name(key) for key in segment_keys)]
    changes = CounterMetricFamily(f"{PREFIX}changes", "Changes of level that were found.", labels=labels)
    last = GaugeMetricFamily(
        f"{PREFIX}last_change_timestamp_seconds", "When the latest change of level was found.", labels=labels
    )
    for (metric, segment), number in totals.items():
        changes.add_metric([metric, *segment], number)
    for (metric, segment), at in latest.items():
        last.add_metric([metric, *segment], at)
    yield from (changes, last)
