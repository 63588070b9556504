"""Case files in a real Redis: layout, filters, bounds, names, forgetting."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from consumer.case_filter import CaseFilter, case_key, folded, mentions, moment, name_digest, searched_text, signature
from consumer.case_store import PREFIX, CaseStore, CaseStoreError
from consumer.embedded import embedded_redis, free_port
from consumer.pages.addresses import Query
from consumer.pages.listing import listed
from tests.case_files import ANSWER, audited, case_file

NOW = float(int(time.time()))
TTL = 3600.0
ALL = CaseFilter()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_redis(tmp_path_factory.mktemp("redis") / "log") as address:
        yield address


@pytest.fixture
def raw(url: str) -> redis.Redis:
    client = redis.Redis.from_url(url)
    client.flushall()
    return client


@pytest.fixture
def store(url: str, raw: redis.Redis) -> CaseStore:
    return CaseStore(url, ttl_seconds=TTL, most=1000)


def ids(store: CaseStore, wanted: CaseFilter = ALL, limit: int | None = None) -> list[str]:
    return [case.record.id for case in store.select(wanted, limit)]


def test_a_case_comes_back_as_it_went_in(store: CaseStore) -> None:
    case = case_file(1, NOW)
    assert store.put([case], NOW) == {"stored": 1, "dropped": 0}
    assert store.get([case_key(case)]) == [case]
    assert store.find("evt-1") == [case]
    assert store.find("trace-1") == [case]
    assert store.find(name_digest("evt-1")) == [case]  # what an exemplar on /metrics shows of a long id
    assert store.find(case_key(case)) == [case]
    assert store.find("evt-10") == []
    assert store.count(NOW) == 1


def test_events_from_the_future_count_from_when_they_were_scored(store: CaseStore) -> None:
    future = {n: case_file(n, NOW + 2e9 + n, record={"scored_time": NOW - n}) for n in range(60)}
    present = {n: case_file(100 + n, NOW - n - 0.5) for n in range(60)}
    store.put([*future.values(), *present.values()], NOW)
    ordered = [f"evt-{number}" for n in range(60) for number in (n, 100 + n)]
    assert ids(store) == ordered
    assert ids(store, CaseFilter(since=NOW - 1.5, until=NOW - 0.25)) == ordered[1:4]
    assert ids(store, CaseFilter(text="in grade 0"), 1) == ["evt-0"]
    first = listed(store, Query(), NOW)
    assert first.next is not None
    second = listed(store, first.next, NOW)
    assert [row.case.record.id for row in (*first.rows, *second.rows)] == ordered[:100]


def test_putting_again_changes_nothing_and_another_content_is_a_second_case(store: CaseStore, raw: redis.Redis) -> None:
    case = case_file(1, NOW)
    store.put([case], NOW)
    before = sorted(raw.keys())
    store.put([case, case], NOW)
    assert sorted(raw.keys()) == before
    assert ids(store) == ["evt-1"]
    other = case_file(1, NOW + 1, record={"content_hash": "f" * 32})
    store.put([other], NOW)
    assert store.find("evt-1") == [other, case]
    assert store.count(NOW) == 2


def test_a_rescored_case_is_found_by_what_it_is_now(store: CaseStore) -> None:
    case = case_file(1, NOW)
    store.put([case], NOW)
    store.put([case_file(1, NOW, record={"fault": "retrieval"})], NOW)
    assert ids(store, CaseFilter(faults=("generation",))) == []
    assert ids(store, CaseFilter(faults=("retrieval",))) == ["evt-1"]


def test_every_filter_means_the_same_in_redis_and_in_memory(store: CaseStore) -> None:
    chance = random.Random(4)
    cases = []
    for number in range(300):
        make = chance.choice([case_file, audited])
        segment = {"app": chance.choice(["helpdesk", "shop"]), "lang": chance.choice(["en", "zh"])}
        case = make(number, NOW - chance.randrange(50), record={"segment": segment})
        if segment["lang"] == "zh":
            case = replace(case, question=f"{case.question} 我有几天年假？")
        if make is case_file and chance.random() < 0.3:
            flags = ("faithfulness_low", "topic_similarity_low")
            case = replace(case, record=replace(case.record, flags=flags, fault="retrieval"), why=("flagged", "audit"))
        cases.append(case)
    store.put(cases, NOW)
    filters = [
        CaseFilter(),
        CaseFilter(since=NOW - 20),
        CaseFilter(until=NOW - 20),
        CaseFilter(since=NOW - 30, until=NOW - 10),
        CaseFilter(flags=("topic_similarity_low",)),
        CaseFilter(flags=("faithfulness_low", "topic_similarity_low"), faults=("generation",)),
        CaseFilter(segment={"app": "shop", "lang": "zh"}),
        CaseFilter(verdicts=("contradicted",), segment={"lang": "en"}),
        CaseFilter(verdicts=("not_found",)),
        CaseFilter(why=("audit",)),
        CaseFilter(text="IN GRADE 12"),
        CaseFilter(text="trace-77", why=("flagged", "audit")),
        CaseFilter(text="%d+ .*"),
        CaseFilter(text="年假"),
        CaseFilter(text="假"),
        CaseFilter(text="de 7"),
        CaseFilter(since=NOW - 20, flags=("faithfulness_low",), text="28 days"),
    ]
    for wanted in filters:
        expected = {case.record.id for case in cases if wanted.matches(case)}
        found = ids(store, wanted)
        assert len(found) == len(set(found))
        assert set(found) == expected, wanted
        times = [case.record.event_time for case in store.select(wanted)]
        assert times == sorted(times, reverse=True)
        assert ids(store, wanted, 7) == found[:7]
    assert sum(bool(ids(store, wanted)) for wanted in filters) >= 12


def test_many_cases_of_one_moment_are_all_listed(url: str, raw: redis.Redis, store: CaseStore) -> None:
    big = CaseStore(url, ttl_seconds=TTL, most=10_000)
    big.put((case_file(i, NOW - i // 2500, contexts=(), statements=()) for i in range(5000)), NOW)
    keys = big.keys(CaseFilter())
    assert len(keys) == len(set(keys)) == 5000
    assert len(big.keys(CaseFilter(until=NOW))) == 2500


def test_the_oldest_go_beyond_the_cap_with_all_traces(url: str, raw: redis.Redis) -> None:
    small = CaseStore(url, ttl_seconds=TTL, most=5)
    outcomes = small.put([case_file(i, NOW - i) for i in range(20)], NOW)
    assert outcomes == {"stored": 20, "dropped": 15}
    assert ids(small) == [f"evt-{i}" for i in range(5)]
    assert len(raw.keys(f"{PREFIX}case:*")) == 5
    assert raw.zcard(f"{PREFIX}names") == 10
    assert raw.hlen(f"{PREFIX}terms") == 5
    assert CaseStore(url, ttl_seconds=TTL, most=2).sweep(NOW) == (0, 3)
    assert small.drop_oldest(1) == 1
    assert ids(small) == ["evt-0"]


def test_expired_cases_leave_nothing_behind(store: CaseStore, raw: redis.Redis) -> None:
    old, new = case_file(1, NOW - TTL + 10), case_file(2, NOW)
    assert store.put([old, new, case_file(3, NOW - TTL - 1)], NOW) == {"stored": 2, "expired": 1, "dropped": 0}
    assert store.count(NOW + 20) == 1
    assert store.sweep(NOW + 20) == (1, 0)
    assert ids(store) == ["evt-2"]
    assert store.sweep(NOW + TTL + 20) == (1, 0)
    assert raw.keys() == []


def test_redis_lets_the_text_go_even_when_nobody_sweeps(url: str, raw: redis.Redis, store: CaseStore) -> None:
    case = case_file(1, NOW)
    store.put([case], NOW)
    assert raw.expiretime(f"{PREFIX}case:{case_key(case)}") == int(NOW + TTL)
    raw.delete(f"{PREFIX}case:{case_key(case)}")  # as Redis does at that time
    assert ids(store) == store.find("evt-1") == ids(store, CaseFilter(text="leave")) == []


def test_a_forgotten_case_does_not_come_back(store: CaseStore, raw: redis.Redis) -> None:
    case = case_file(1, NOW)
    store.put([case, case_file(2, NOW)], NOW)
    assert store.forget([case_key(case), "0" * 48]) == 1
    assert store.put([case], NOW) == {"forgotten": 1, "dropped": 0}
    assert ids(store) == ["evt-2"]
    stored = b"".join(raw.zrange(f"{PREFIX}forgotten", 0, -1))
    assert stored == case_key(case).encode()
    store.sweep(NOW + TTL + 1)
    assert raw.keys() == []


def test_a_damaged_entry_hides_nothing_else(store: CaseStore, raw: redis.Redis) -> None:
    cases = [case_file(i, NOW - i) for i in range(3)]
    store.put(cases, NOW)
    raw.hset(f"{PREFIX}case:{case_key(cases[1])}", "body", b"not zlib")
    assert ids(store) == ["evt-0", "evt-2"]


def test_ids_and_terms_of_a_hostile_writer_stay_inside_the_layout(store: CaseStore, raw: redis.Redis) -> None:
    evil = "x\nnffff\nt\x00" + "y" * 5000
    case = case_file(1, NOW, record={"id": evil, "trace_id": evil, "segment": {evil: evil}, "flags": (evil,)})
    store.put([case], NOW)
    assert store.find(evil) == [case]
    assert max(map(len, raw.keys())) < 300
    assert store.forget([case_key(case)]) == 1
    assert {key.decode() for key in raw.keys()} == {f"{PREFIX}forgotten"}  # noqa: SIM118


def test_redis_away_is_one_line_without_credentials() -> None:
    away = CaseStore(f"redis://me:secret@127.0.0.1:{free_port()}/0", ttl_seconds=1, most=1)
    with pytest.raises(CaseStoreError, match="does not answer") as caught:
        away.count(NOW)
    assert "secret" not in str(caught.value)
    with pytest.raises(CaseStoreError, match="cases_url cannot be used"):
        CaseStore("not-a-url", ttl_seconds=1, most=1)


def test_a_full_redis_says_that_it_is_full(tmp_path: Path) -> None:
    with embedded_redis(tmp_path / "log", "--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as small:
        store = CaseStore(small, ttl_seconds=TTL, most=100_000)
        noise = random.Random(1)
        cases = [case_file(i, NOW - i, question=noise.randbytes(20_000).hex()) for i in range(200)]
        with pytest.raises(CaseStoreError) as caught:
            store.put(cases, NOW)
        assert caught.value.full
        there = len(ids(store))
        assert there > 10
        assert store.drop_oldest(there // 2) == there // 2
        assert store.put(cases[-3:], NOW)["stored"] == 3


def test_forgetting_by_text_sees_passages_and_reasons() -> None:
    case = case_file(1, NOW)
    assert mentions(case, "CANTEEN  opens")
    assert mentions(case, "the passage says 26")
    assert not mentions(case, "garden")
    assert "canteen" not in searched_text(case)


@given(st.text())
def test_folding_twice_is_folding_once_for_what_is_searched(text: str) -> None:
    assert folded(text) in folded(f"before {text} after") or not folded(text).isascii()


@given(st.text(alphabet="ab 年假天Ａ\u0301é") | st.text(), st.text(max_size=8), st.text(max_size=8))
def test_no_text_is_ruled_out_by_its_signature(text: str, before: str, after: str) -> None:
    whole, part = folded(before + text + after), folded(text)
    if part in whole:
        assert signature(part) & signature(whole) == signature(part)
    assert signature("no such words here") & signature(folded(ANSWER)) != signature("no such words here")


def test_moments() -> None:
    assert moment("2h", NOW) == NOW - 7200
    assert moment("1.5d", NOW) == NOW - 129_600
    assert moment("2026-09-21T14:13:20Z", 0) == moment("2026-09-21T14:13:20", 0) == 1_790_000_000
    assert moment("2026-09-21T16:13:20+02:00", 0) == 1_790_000_000
    for bad in ("yesterday", "2 weeks", "", "-3h"):
        with pytest.raises(ValueError, match="is no time"):
            moment(bad, NOW)
