"""A scorebook with the registry that exports it, and what a scrape of it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families as parse

from consumer.record import ScoreRecord, encode_record
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from metrics.exposition import (
    Exposition,
    GuardedCollector,
    Progress,
    Rolled,
    definition_info,
    definition_since,
)
from metrics.label_exposition import corrected_families

NOW = 1_790_000_000.0
SETTINGS = {
    "segments": {"allow": {"app": ["helpdesk"], "lang": ["en", "zh"]}},
    "monitor": {"windows": {"5m": 300, "1h": 3600}},
}
COMBINATIONS = 2 * 3


class Board:
    """A scorebook on a clock of the test's own, and its exposition."""

    def __init__(self, **sections: Mapping[str, Any]) -> None:
        self.now = NOW
        self.book = Scorebook(Settings.model_validate(SETTINGS | sections), lambda: self.now)
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(GuardedCollector(self.families))
        self.exposition = Exposition(self.book.segment_keys, "1.2.3")

    def families(self) -> Iterator[Metric]:
        progress = Progress(True, True, {"5m": 1.0, "1h": 0.25}, 0.9)
        with self.book.opened() as (rolling, counting):
            readings, shares = rolling.read(self.now)
            counting.keep(rolling.definitions)
            yield from self.exposition.progress(progress)
            yield from self.exposition.rolling(Rolled(readings, shares), progress)
            yield from self.exposition.counters(counting)
            yield definition_info(rolling.definitions)
            yield definition_since(rolling.definitions)
        yield from corrected_families(*self.book.corrected(readings, shares), self.book.segment_keys)

    def count(self, *records: ScoreRecord) -> None:
        for record in records:
            self.book.count(encode_record(record), self.now)

    def value(self, name: str, **labels: str) -> float | None:
        """The one sample of that name with those labels; None where there is none."""
        found = [
            sample.value
            for family in parse(generate_latest(self.registry).decode())
            for sample in family.samples
            if sample.name == f"groundwatch_{name}" and labels.items() <= sample.labels.items()
        ]
        assert len(found) <= 1, found
        return found[0] if found else None

    def outcome(self, outcome: str) -> float | None:
        return self.value("scores_read_total", outcome=outcome)


EN = {"app": "helpdesk", "lang": "en"}
ALL = {"app": "all", "lang": "all"}
