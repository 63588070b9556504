"""Score a batch of events: embed what the metrics need in one call, then one outcome per metric and event."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metrics.event import Event
from metrics.metric import Embedder, Metric, Text, Vectors, definition
from metrics.outcome import Outcome, Reason, Unscored
from metrics.sketch import sketch_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All outcomes of one event, by metric name, and the sketches of question and context (base64), where wanted."""

    outcomes: Mapping[str, Outcome]
    sketch: Mapping[str, str]


class Evaluator:
    """Metrics over one embedder; used by the scorer, by `score-file` and by every benchmark alike."""

    def __init__(self, metrics: Sequence[Metric], embedder: Embedder, *, sketches: bool) -> None:
        self.metrics = tuple(metrics)
        self.embedder = embedder
        self.definitions = {m.name: definition(m.formula, embedder.identity) for m in self.metrics}
        self._sketches = sketches

    def evaluate(self, events: Sequence[Event]) -> list[Evaluation]:
        """One evaluation per event, in order. Never raises for the sake of an event or of the embedder."""
        needed = [[m.texts(event) for m in self.metrics] for event in events]
        unique = list(dict.fromkeys(text for per_event in needed for texts in per_event for text in texts))
        vectors = self._embed(unique)
        return [self._one(event, texts, vectors) for event, texts in zip(events, needed, strict=True)]

    def _embed(self, texts: list[Text]) -> Vectors:
        try:
            return dict(zip(texts, self.embedder.embed(texts), strict=True))
        except Exception:
            log.exception("embedding a batch of %d texts failed", len(texts))
            failed = Unscored(Reason.EMBEDDER_ERROR)
            return dict.fromkeys(texts, failed)

    def _one(self, event: Event, texts: list[tuple[Text, ...]], vectors: Vectors) -> Evaluation:
        outcomes: dict[str, Outcome] = {}
        for metric in self.metrics:
            try:
                outcomes[metric.name] = metric.score(event, vectors)
            except Exception:
                log.exception("metric %s failed", metric.name)
                outcomes[metric.name] = Unscored(Reason.INTERNAL_ERROR)
        used = dict.fromkeys(text for group in texts for text in group)
        return Evaluation(outcomes, sketch_of(event, used, vectors) if self._sketches else {})
