"""The scorer's counters and gauges (design: 4.6). A private registry is passed in; counters start at 0."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from consumer.decoding.reasons import INTERNAL_ERROR, Refusal, Repair
from consumer.offsets import Partition
from metrics.outcome import Reason

AGE_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600)
BATCH_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Ending(StrEnum):
    """How an event ended; per partition, events in = the sum of these + in flight."""

    SAMPLED_OUT = "sampled_out"
    IGNORED = "ignored"
    SCORED = "scored"
    UNSCORED = "unscored"
    DEAD_LETTERED = "dead_lettered"


class ScorerMetrics:
    """What the scorer exports."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        metrics: Mapping[str, str],
        outputs: Iterable[str],
        versions: Mapping[str, str],
    ) -> None:
        """`metrics` maps metric name to definition; `outputs` are the output topics; `versions` goes to build_info."""

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"groundwatch_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"groundwatch_{name}", text, labels, registry=registry)

        self.events_in = counter("events_in", "Records delivered by Kafka.", "topic", "partition")
        self.events = counter("events", "Records by how they ended.", "topic", "partition", "outcome")
        self.unscored = counter("unscored", "Metrics without a value, by reason.", "metric", "reason")
        self.deadletters = counter("deadletters", "Dead letters by reason.", "reason")
        self.repairs = counter("input_repairs", "Repairs made to what was read, by kind.", "kind")
        self.output_refused = counter("output_refused", "Outputs refused for good, by topic.", "topic")
        self.offset_resets = counter(
            "offset_resets", "Times the committed offset was no longer there.", "topic", "partition"
        )
        self.events_missing = counter(
            "events_missing", "Events that retention removed before they were read.", "topic", "partition"
        )
        self.commit_errors = counter("commit_errors", "Commits that the broker did not take.")
        self.stale_results = counter("stale_results", "Results dropped because their partition was lost meanwhile.")
        self.rebalances = counter("rebalances", "Assignments that changed, by kind.", "kind")
        self.event_age = Histogram(
            "groundwatch_event_age_seconds",
            "Age of an event when it is scored: now minus the time it was logged.",
            buckets=AGE_BUCKETS,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "groundwatch_batch_seconds", "Time of one scoring batch.", buckets=BATCH_BUCKETS, registry=registry
        )
        self.inflight = gauge("inflight_events", "Sampled events between poll and acknowledged output.")
        self.paused = gauge("paused_partitions", "Partitions paused because too much is in flight.")
        self.admitted_share = gauge("admitted_share", "Share of sampled events that is scored; below 1 it sheds.")
        self.lag = gauge("lag_events", "Events on the topic that are not finished.", "topic", "partition")
        self.progress = gauge(
            "progress_timestamp_seconds", "When the committed offset last moved.", "topic", "partition"
        )
        gauge("build_info", "Versions in force.", *versions).labels(**versions).set(1)
        info = gauge("definition_info", "Definition of each metric.", "metric", "definition")
        for metric, definition in metrics.items():
            info.labels(metric, definition).set(1)
            for missing in Reason:
                self.unscored.labels(metric, missing.value)
        self._shed_by_metric = tuple(self.unscored.labels(metric, Reason.SHED.value) for metric in metrics)
        for reason in (*Refusal, INTERNAL_ERROR):
            self.deadletters.labels(str(reason))
        for repair in Repair:
            self.repairs.labels(repair.value)
        for topic in outputs:
            self.output_refused.labels(topic)
        for kind in ("assigned", "revoked", "lost"):
            self.rebalances.labels(kind)
        self._lock = threading.Lock()
        self._tally = dict.fromkeys(Ending, 0)

    def assigned(self, partition: Partition) -> None:
        """Pre-create the partition's counters at 0."""
        labels = (partition[0], str(partition[1]))
        self.events_in.labels(*labels)
        self.offset_resets.labels(*labels)
        self.events_missing.labels(*labels)
        for ending in Ending:
            self.events.labels(*labels, ending.value)

    def released(self, partition: Partition) -> None:
        """A revoked or lost partition: its gauges go, or they would outlive the truth. Counters stay."""
        for gauge in (self.lag, self.progress):
            gauge.remove(partition[0], str(partition[1]))

    def ended(self, partition: Partition, ending: Ending, events: int = 1) -> None:
        self.events.labels(partition[0], str(partition[1]), ending.value).inc(events)
        with self._lock:
            self._tally[ending] += events

    def shed(self, partition: Partition, events: int = 1) -> None:
        """Sampled events that are let go, since they are beyond what can be scored: every metric lacks them."""
        for unscored in self._shed_by_metric:
            unscored.inc(events)
        self.ended(partition, Ending.UNSCORED, events)

    def tally(self) -> dict[str, int]:
        """Events by ending since the start, over all partitions; for the line at shutdown."""
        with self._lock:
            return {ending.value: count for ending, count in self._tally.items()}
