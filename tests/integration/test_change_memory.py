"""Changes of level outlive a monitor: over a real Redis, one book finds them and another one shows them."""

from __future__ import annotations

import random

import pytest

from consumer.case_store import CaseStore
from consumer.change_memory import ChangeMemory
from consumer.embedded import free_port
from consumer.record import encode_record
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from tests.score_records import score_record

NOW = 1_790_000_000.0
SETTINGS = Settings.model_validate({"segments": {"allow": {"app": ["helpdesk", "shop"], "lang": ["en"]}}})


@pytest.fixture(scope="module")
def before() -> Scorebook:
    """Ten hours of yes-and-no; half an hour ago the good ones became fewer."""
    times = [NOW]
    book = Scorebook(SETTINGS, lambda: times[-1])
    chance = random.Random(8)
    for number in range(1200):
        times.append(NOW - 36_000.0 + number * 30.0)
        good = 0.95 if number < 1140 else 0.3
        record = score_record(number, times[-1], {"faithfulness": float(chance.random() < good)})
        book.count(encode_record(record), times[-1])
        if number % 10 == 9:
            book.attend()
    return book


def store(url: str) -> CaseStore:
    return CaseStore(url, ttl_seconds=3600.0, most=100, label_seconds=3600.0)


def test_a_monitor_that_starts_anew_knows_what_was_found(before: Scorebook, redis_url: str) -> None:
    found = before.changes()
    assert found
    memory = ChangeMemory(store(redis_url), before)
    memory.attend()
    after = Scorebook(SETTINGS, lambda: NOW)
    takes_over = ChangeMemory(store(redis_url), after)
    takes_over.attend()
    assert after.changes() == found
    assert after.change_counts()[1] == before.change_counts()[1]
    memory.attend()
    takes_over.attend()
    assert before.changes() == after.changes() == found


def test_without_redis_nothing_is_lost_but_the_memory(before: Scorebook) -> None:
    found = before.changes()
    away = ChangeMemory(store(f"redis://127.0.0.1:{free_port()}/0"), before)
    away.attend()
    away.attend()
    assert before.changes() == found
