"""The case store with as many case files as it keeps: how long a list, a filter, a search and one case take.

    python -m tests.bench.cases [--cases 50000]

On the Redis that pip installs (Valkey). Targets: any list or filter under 200 ms, one case under 100 ms. Prints one
line a figure (median and worst of 20); exit code 1 where one in ten misses its target.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import redis

from consumer.case_file import CaseChunk, CaseFile
from consumer.case_filter import CaseFilter, case_key
from consumer.case_store import CaseStore
from consumer.embedded import embedded_redis
from tests.case_files import ANSWER, PASSAGE, audited, case_file

LIST_SECONDS, CASE_SECONDS = 0.2, 0.1
ROUNDS = 20
WORDS = [
    *PASSAGE.lower().replace(".", "").split(),
    "router",
    "printer",
    "badge",
    "parking",
    "invoice",
    "budget",
    "door",
]


def cases(count: int, now: float) -> Iterator[CaseFile]:
    """Five passages of some 1,200 characters, an answer of 600; spread over two weeks, ten apps, two languages."""
    chance = random.Random(20261130)
    for number in range(count):
        good = chance.random() < 0.3
        base = (audited if good else case_file)(number, now - chance.random() * 14 * 86_400)
        segment = {"app": f"app-{chance.randrange(10)}", "lang": chance.choice(["en", "zh"])}
        fault = base.record.fault if good else chance.choice(["retrieval", "generation", "unknown"])
        answer = f"{ANSWER} {' '.join(chance.choices(WORDS, k=80))}"
        passages = tuple(
            CaseChunk(" ".join(chance.choices(WORDS, k=200)), f"doc-{chance.randrange(9999)}#{i}", "kb", 0.5, 0.8)
            for i in range(4)
        )
        record = replace(base.record, segment=segment, fault=fault, scored_time=now)
        yield replace(base, record=record, answer=answer, contexts=(*base.contexts[:1], *passages))


def timed(name: str, limit: float, act: Callable[[], int]) -> bool:
    spent, found = [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        found = act()
        spent.append(time.perf_counter() - began)
    spent.sort()
    good = spent[ROUNDS * 9 // 10 - 1] <= limit
    print(
        f"{name:<52} {spent[len(spent) // 2] * 1000:7.1f} ms  worst {spent[-1] * 1000:7.1f} ms  "
        f"found {found:>6}  {'ok' if good else f'MISSED: {limit * 1000:g} ms'}"
    )
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000)
    count = parser.parse_args().cases
    now = time.time()
    with tempfile.TemporaryDirectory() as folder, embedded_redis(Path(folder) / "redis.log") as url:
        store = CaseStore(url, ttl_seconds=14 * 86_400, most=count)
        ready = list(cases(min(count, 2000), now))
        began = time.perf_counter()
        outcomes = store.put(ready, now)
        rate = len(ready) / (time.perf_counter() - began)
        outcomes += store.put((case for at, case in enumerate(cases(count, now)) if at >= len(ready)), now)
        memory = redis.Redis.from_url(url).info("memory")["used_memory"]
        print(f"{store.count(now)} cases ({dict(outcomes)}), put {rate:.0f}/s, Redis {memory / 2**20:.0f} MB")
        one = ready[1000]

        def listed(wanted: CaseFilter, limit: int) -> Callable[[], int]:
            return lambda: len(list(store.select(wanted, limit)))

        flagged = ("faithfulness_low",)
        hour = CaseFilter(since=now - 3600)
        narrow = CaseFilter(flags=flagged, faults=("retrieval",), segment={"app": "app-3", "lang": "zh"})
        results = [
            timed("list: newest 50", LIST_SECONDS, listed(CaseFilter(), 50)),
            timed("list: newest 200", LIST_SECONDS, listed(CaseFilter(), 200)),
            timed("list: 50 of the last hour", LIST_SECONDS, listed(hour, 50)),
            timed("list: 50 of one flag", LIST_SECONDS, listed(CaseFilter(flags=flagged), 50)),
            timed("list: 50 of flag, fault and segment", LIST_SECONDS, listed(narrow, 50)),
            timed("filter: nothing has both (all looked at)", LIST_SECONDS,
                  listed(CaseFilter(why=("audit",), flags=flagged), 50)),
            timed("filter: any of two faults, of an old day", LIST_SECONDS,
                  listed(CaseFilter(until=now - 12 * 86_400, faults=("retrieval", "generation")), 50)),
            timed("keys of every case of one app", LIST_SECONDS,
                  lambda: len(store.keys(CaseFilter(segment={"app": "app-3"})))),
            timed("search: a text that 50 of the newest have", LIST_SECONDS, listed(CaseFilter(text="printer"), 50)),
            timed("search: a text that one case has", LIST_SECONDS,
                  listed(CaseFilter(text=f"grade {count // 2 + 1}?"), 50)),
            timed("search: a text that none has (all looked at)", LIST_SECONDS,
                  listed(CaseFilter(text="nowhere to be found"), 50)),
            timed("one case by its key", CASE_SECONDS, lambda: len(store.get([case_key(one)]))),
            timed("one case by its event id", CASE_SECONDS, lambda: len(store.find(one.record.id))),
            timed("count", CASE_SECONDS, lambda: store.count(now)),
        ]  # fmt: skip
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
