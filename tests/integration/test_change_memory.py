"""Changes of level outlive a monitor: what one finds, another one over the same Redis shows."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import httpx
import pytest

from consumer.case_store import CaseStore
from consumer.change_memory import ChangeMemory
from consumer.embedded import free_port
from consumer.record import encode_record
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from tests.integration.monitor_harness import ScoreLog, is_active, read_total
from tests.processes import wait_until
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


@pytest.mark.full
def test_the_overview_tells_a_change_after_a_restart(kafka: str, redis_url: str, tmp_path: Path) -> None:
    log, now, chance = ScoreLog(kafka).create(), time.time(), random.Random(8)

    def answered(first: int, number: int, begin: float, seconds: float, good: float, model: str) -> None:
        scores = [sum(chance.random() < good for _ in range(4)) / 4 for _ in range(number)]
        times = [begin + seconds * i / number for i in range(number)]
        log.produce(
            *(
                score_record(first + i, at, {"faithfulness": score}, labels={"model": model})
                for i, (at, score) in enumerate(zip(times, scores, strict=True))
            )
        )

    pages = f"127.0.0.1:{free_port()}"
    sections: dict[str, dict[str, object]] = {"redis": {"cases_url": redis_url}, "pages": {"listen": pages}}

    def told() -> list[str]:
        found = httpx.get(f"http://{pages}/", timeout=30).text
        return re.findall(
            r"fell from 0\.\d\d to 0\.\d\d</strong>\s+in app helpdesk, lang en, since about <time[^>]+>", found
        )

    with log.monitor(tmp_path, **sections) as monitor:
        answered(0, 2000, now - 20 * 3600, 19 * 3600, 0.92, "m-1")
        wait_until(lambda: is_active(monitor) and read_total(monitor) == 2000, 120, "the calm hours are counted")
        time.sleep(6)  # The detectors learn from them.
        answered(5000, 200, now - 3600, 3600, 0.5, "m-2")
        wait_until(lambda: bool(told()), 120, "the change on the overview")
        before = told()
        time.sleep(6)  # It is kept within 5 s.
        assert monitor.terminate() == 0
    with log.monitor(tmp_path, "again", **sections) as monitor:
        wait_until(lambda: is_active(monitor), 120, "active again")
        wait_until(lambda: told() == before, 60, "the same change")
        explained = "change of faithfulness (app=helpdesk, lang=en)"
        wait_until(lambda: explained in monitor.log.read_text(), 120, "what explains it is looked for again")
        latest = monitor.total("groundwatch_last_change_timestamp_seconds", metric="faithfulness", app="helpdesk")
        assert now - 3600 < latest < now
        assert monitor.total("groundwatch_changes_total") == 0
