"""Score records for the tests of the monitor, and what the gauges must say about them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from consumer.record import MetricScore, MetricUnscored, Position, ScoreRecord

DEFINITIONS = {"topic_similarity": "3fa9c1d2", "faithfulness": "0badcafe"}
SEGMENT = {"app": "helpdesk", "lang": "en"}


def score_record(
    number: int,
    event_time: float,
    scores: Mapping[str, float],
    *,
    probability: float = 1.0,
    failed: Iterable[str] = (),
    **changes: Any,
) -> ScoreRecord:
    """Record `number` with these scores, all of one inclusion probability; `failed` metrics timed out."""
    fields: dict[str, Any] = {
        "id": f"evt-{number}",
        "content_hash": hashlib.sha256(str(number).encode()).hexdigest()[:32],
        "event_time": event_time,
        "scored_time": event_time,
        "source": Position("qa.events", 0, number),
        "segment": SEGMENT,
        "sampled_by": "rate",
        "probability": probability,
        "scores": {name: MetricScore(value, probability) for name, value in scores.items()},
        "unscored": {name: MetricUnscored("judge_timeout", probability) for name in failed},
        "definitions": DEFINITIONS,
        "versions": {"embedder": "e5", "groundwatch": "test"},
        "labels": {"model": "m-1"},
    }
    return ScoreRecord(**(fields | changes))


def weighted_mean(records: Iterable[ScoreRecord], metric: str, **segment: str) -> float:
    """Over the distinct records, in exact summation."""
    distinct = {(r.id, r.content_hash): r for r in records if segment.items() <= r.segment.items()}
    chosen = [r.scores[metric] for r in distinct.values() if metric in r.scores]
    return math.fsum(s.value / s.probability for s in chosen) / math.fsum(1 / s.probability for s in chosen)
