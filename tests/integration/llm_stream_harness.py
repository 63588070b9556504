"""A whole scorer whose judge is a scripted HTTP server, and what its records say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from consumer.record import ScoreRecord, decode_record
from consumer.settings import Settings
from tests.integration.judge_server import (
    JudgeServer,
)
from tests.integration.scorer_harness import (
    Harness,
    event,
    produce,
    read_all,
    running_scorer,
    test_settings,
)
from tests.processes import wait_until

JUDGED = ("faithfulness", "topic_similarity")


@contextmanager
def judged_stream(kafka: str, server: JudgeServer, **sections: dict[str, Any]) -> Iterator[Harness]:
    """A scorer whose judge is `server`; `sections` are merged over its settings."""
    judge = server.settings(cache=False) | sections.pop("judge", {})
    own = {"scoring": {"metrics": JUDGED}, "cases": {"audit_share": 0.0}} | sections
    with running_scorer(test_settings(kafka, judge=judge, **own)) as scorer:
        yield scorer


def send(scorer: Harness, numbers: range, **changes: Any) -> None:
    produce(
        scorer.settings.kafka.bootstrap_servers,
        scorer.settings.topics.events[0],
        [event(n, **changes) for n in numbers],
    )


def ends(scorer: Harness, events: int, seconds: float = 30) -> None:
    wait_until(lambda: sum(scorer.ended().values()) >= events, seconds, f"{events} events ended: {scorer.ended()}")


def records_of(settings: Settings) -> dict[str, ScoreRecord]:
    read = (decode_record(raw.value) for raw in read_all(settings.kafka.bootstrap_servers, settings.topics.scores))
    return {record.id: record for record in read}


def reasons(settings: Settings, metric: str = "faithfulness") -> dict[str, int]:
    """How many events have which reason; `scored` for a value."""
    found: dict[str, int] = {}
    for record in records_of(settings).values():
        reason = record.unscored[metric].reason if metric in record.unscored else "scored"
        found[reason] = found.get(reason, 0) + 1
    return found
