"""Corrected scores as Prometheus families (names and labels: docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from metrics.exposition import PREFIX
from metrics.label_book import CorrectedReading, LabelCount
from metrics.label_names import label_name


def corrected_families(
    readings: Iterable[CorrectedReading], counts: Iterable[LabelCount], segment_keys: Sequence[str]
) -> Iterator[Metric]:
    """The share of good answers as labels correct it, its interval, and how many labels there are for that."""
    keys = [label_name(key) for key in segment_keys]
    labels = ["metric", "window", *keys]
    share = GaugeMetricFamily(
        f"{PREFIX}rolling_score_corrected",
        "Share of good answers in the window: rolling_score, corrected by labels of audited answers.",
        labels=labels,
    )
    low = GaugeMetricFamily(
        f"{PREFIX}rolling_score_corrected_low", "Lower end of its 95 % confidence interval.", labels=labels
    )
    high = GaugeMetricFamily(
        f"{PREFIX}rolling_score_corrected_high", "Upper end of its 95 % confidence interval.", labels=labels
    )
    known = GaugeMetricFamily(
        f"{PREFIX}correction_labels", "Labels of audited answers that can correct the score.", labels=["metric", *keys]
    )
    flagged = GaugeMetricFamily(
        f"{PREFIX}correction_labels_flagged_ratio",
        "Weighted share of flagged answers among them.",
        labels=["metric", *keys],
    )
    for reading in readings:
        values = [reading.metric, reading.window, *reading.segment]
        share.add_metric(values, reading.corrected.mean)
        low.add_metric(values, reading.corrected.low)
        high.add_metric(values, reading.corrected.high)
    for count in counts:
        known.add_metric([count.metric, *count.segment], count.labels)
        flagged.add_metric([count.metric, *count.segment], count.flagged)
    yield from (share, low, high, known, flagged)
