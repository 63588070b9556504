"""The pages of a real monitor with as many case files as it keeps, while scores flow: how long each page takes, and
whether the scores notice.

    python -m tests.bench.pages_speed [--cases 50000] [--records 300000] [--rate 500] [--seconds 20]

On a real Kafka and the Redis that pip installs, after a full day's window was read back. Scores come at a fixed rate;
first nobody looks at a page, then somebody asks for one after another. Targets: list and filter under 200 ms, one case
under 100 ms (9 in 10 requests each); 99 % of the scores counted within 5 s with somebody looking; memory of the monitor
under 150 MB. Prints one line a figure; exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import redis
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.case_filter import CaseFilter, case_key, sameness
from consumer.case_store import CaseStore
from consumer.embedded import embedded_redis, free_port
from tests.bench.cases import cases
from tests.bench.monitor import TOPIC, Records, cpu_seconds, environment, fill, is_active, live, memory_mb
from tests.case_files import WRONG
from tests.processes import groundwatch, wait_until
from tests.services import KAFKA, kafka_cluster

Asked = tuple[str, str, float | None]
"""Name, address and limit (seconds) of a page."""
COSTED = 10
LIST_SECONDS, CASE_SECONDS, DELAY_SECONDS, MEMORY_MB = 0.2, 0.1, 5.0, 150.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--records", type=int, default=300_000, help="Score records of the last day, read back first.")
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    if not KAFKA.exists():
        print("skipped: no real Kafka (../shared/kafka is absent)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return bench(Path(folder), options.cases, options.records, options.rate, options.seconds)


def bench(folder: Path, count: int, read_back: int, rate: int, seconds: float) -> int:
    with ExitStack() as stack:
        bootstrap = stack.enter_context(kafka_cluster(folder / "kafka")).bootstrap
        url = stack.enter_context(embedded_redis(folder / "redis.log"))
        now = time.time()
        store = CaseStore(url, ttl_seconds=14 * 86_400, most=count)
        began = time.perf_counter()
        store.put(cases(count, now), now)
        print(f"{store.count(now)} cases stored in {time.perf_counter() - began:.0f} s; load {os.getloadavg()[0]:.1f}")
        topics = (TOPIC, "qa.flagged", "qa.deadletter", "qa.labels")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in topics]).values():
            made.result()
        records = Records()
        fill(bootstrap, records, read_back)
        metrics, pages = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        variables = environment(bootstrap, metrics) | {
            "GROUNDWATCH__REDIS__CASES_URL": url,
            "GROUNDWATCH__PAGES__LISTEN": pages,
            "GROUNDWATCH__CASES__MOST": str(count),
        }
        monitor = stack.enter_context(groundwatch("monitor", metrics, folder / "monitor.log", variables))
        wait_until(lambda: is_active(monitor), 300, "the monitor is active")
        quiet = live(bootstrap, monitor, records, rate, seconds)[2]
        before = memory_mb(monitor.process.pid, "VmHWM")
        one = next(iter(store.select(CaseFilter(flags=("faithfulness_low",)), 1)))
        asked = addresses(case_key(one), one.record.id, count)
        spent: dict[str, list[float]] = {name: [] for name, _, _ in asked}
        over = threading.Event()
        looking = threading.Thread(target=look, args=(f"http://{pages}", asked, spent, over))
        looking.start()
        busy = live(bootstrap, monitor, records, rate, seconds)[2]
        over.set()
        looking.join()
        costs = costs_of(f"http://{pages}", asked, monitor.process.pid, server_pid(url))
        results = [shown(name, limit, spent[name], costs[name]) for name, _, limit in asked]
        results.append(delay("scores counted, nobody looks", quiet, None))
        results.append(delay("scores counted, somebody looks", busy, DELAY_SECONDS))
        memory = memory_mb(monitor.process.pid, "VmHWM")
        results.append(memory < MEMORY_MB)
        print(f"{'memory of the monitor, nobody looks':<44} {before:7.1f} MB")
        print(f"{'memory of the monitor, somebody looks':<44} {memory:7.1f} MB  {'ok' if results[-1] else 'MISSED'}")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0 if all(results) else 1


def addresses(key: str, event_id: str, count: int) -> list[Asked]:
    segment = "segment=app%3Dapp-3%2Clang%3Dzh"
    return [
        ("overview", "/", None),
        ("list: newest 50", "/cases", LIST_SECONDS),
        ("list: the last hour", "/cases?from=1h", LIST_SECONDS),
        ("filter: as an alert links to", f"/cases?{segment}&flag=faithfulness_low&from=24h", LIST_SECONDS),
        ("filter: flag, fault and segment", f"/cases?{segment}&flag=faithfulness_low&fault=retrieval", LIST_SECONDS),
        ("filter: nothing has both (all looked at)", "/cases?why=audit&flag=faithfulness_low", LIST_SECONDS),
        ("filter: the same wrong statement", f"/cases?says={sameness(WRONG)}", LIST_SECONDS),
        ("search: a text that many have", "/cases?q=printer", LIST_SECONDS),
        ("search: a text that one has", f"/cases?q=grade+{count // 2 + 1}%3F", LIST_SECONDS),
        ("groups: by wrong statement", "/cases?group=statement", LIST_SECONDS),
        ("groups: by question, one segment", f"/cases?{segment}&group=question", LIST_SECONDS),
        ("one case by its key", f"/cases/{key}", CASE_SECONDS),
        ("one case by its event id", f"/cases/{event_id}", CASE_SECONDS),
    ]


def look(address: str, asked: list[Asked], spent: dict[str, list[float]], over: threading.Event) -> None:
    """One page after another, as long as scores flow."""
    with httpx.Client(base_url=address, timeout=30) as client:
        while not over.is_set():
            for name, path, _ in asked:
                began = time.perf_counter()
                response = client.get(path)
                spent[name].append(time.perf_counter() - began)
                assert response.status_code == 200, f"{path}: {response.status_code}"


def costs_of(address: str, asked: list[Asked], monitor: int, redis_server: int) -> dict[str, float]:
    """Seconds of processor time of monitor and Redis for one request of each page, whatever else the machine does; no
    scores flow meanwhile. What the monitor does by itself in that time (some 1 %) is in it."""
    costs = {}
    with httpx.Client(base_url=address, timeout=30) as client:
        for name, path, _ in asked:
            before = cpu_seconds(monitor) + cpu_seconds(redis_server)
            for _ in range(COSTED):
                client.get(path)
            costs[name] = (cpu_seconds(monitor) + cpu_seconds(redis_server) - before) / COSTED
    return costs


def server_pid(url: str) -> int:
    return int(redis.Redis.from_url(url).info("server")["process_id"])


def shown(name: str, limit: float | None, spent: list[float], cost: float) -> bool:
    spent.sort()
    good = limit is None or spent[len(spent) * 9 // 10] <= limit
    verdict = "" if limit is None else "ok" if good else f"MISSED: {limit * 1000:g} ms"
    cost *= 1000
    print(
        f"{name:<44} {spent[len(spent) // 2] * 1000:7.1f} ms  9 in 10 {spent[len(spent) * 9 // 10] * 1000:7.1f} ms  "
        f"worst {spent[-1] * 1000:7.1f} ms  of {len(spent):>3}  processor {cost:6.1f} ms  {verdict}"
    )
    return good


def delay(name: str, delays: list[float], limit: float | None) -> bool:
    high = delays[len(delays) * 99 // 100]
    good = limit is None or high < limit
    print(f"{name:<44} {delays[len(delays) // 2]:7.2f} s   99 % within {high:.2f} s  {'ok' if good else 'MISSED'}")
    return good


if __name__ == "__main__":
    sys.exit(main())
