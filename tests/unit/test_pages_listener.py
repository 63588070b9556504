"""The thread that serves the pages: that /metrics and /healthz tell when it does not."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from consumer.embedded import free_port
from consumer.health import STUCK_SECONDS, Pulse
from consumer.pages.dead_letters import Counted
from consumer.pages.listener import LATE_SECONDS, PageServer, serving_pages
from consumer.pages.sources import Looks, Sources
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from tests.processes import wait_until


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


def sources(port: int) -> Sources:
    settings = Settings.model_validate({"pages": {"listen": f"127.0.0.1:{port}"}})
    clock = Clock()
    return Sources(
        settings, "t", Looks(Scorebook(settings, clock), clock), lambda: None, lambda: (False, "not yet"), None,
        lambda: Counted(), None, clock,
    )  # fmt: skip


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pulse(clock: Clock) -> Pulse:
    return Pulse(clock)


@pytest.fixture
def server(clock: Clock, pulse: Pulse) -> Iterator[PageServer]:
    found = PageServer(sources(free_port()), pulse, clock)
    found.start()
    wait_until(lambda: up(found) == 1.0, 10, "served")
    yield found
    found.close()


def up(server: PageServer) -> float:
    (family,) = server.collect()
    return float(family.samples[0].value)


def test_pages_that_are_served_are_up_and_their_end_is_no_fault(server: PageServer, clock: Clock, pulse: Pulse) -> None:
    with urllib.request.urlopen(f"http://{server.address}/", timeout=10) as answer:
        assert answer.status == 200
    server.close()
    assert up(server) == 0.0
    clock.at += 2 * STUCK_SECONDS
    assert pulse.check() == (True, "ok")


def test_a_thread_that_has_died_is_told(clock: Clock, pulse: Pulse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_site: web.TCPSite) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(web.TCPSite, "start", fails)
    server = PageServer(sources(free_port()), pulse, clock)
    server.start()
    server._thread.join(10)
    assert not server._thread.is_alive()
    assert up(server) == 0.0
    assert pulse.check() == (True, "ok")
    clock.at += STUCK_SECONDS + 1
    assert pulse.check() == (False, f"loop pages has not turned for {STUCK_SECONDS + 1:.0f} s")


def test_a_loop_that_hangs_is_told(server: PageServer, clock: Clock, pulse: Pulse) -> None:
    held, released = threading.Event(), threading.Event()

    async def hang() -> None:
        held.set()
        released.wait(10)

    asyncio.run_coroutine_threadsafe(hang(), server._loop)
    assert held.wait(10)
    clock.at += STUCK_SECONDS + LATE_SECONDS
    assert up(server) == 0.0
    assert not pulse.check()[0]
    released.set()
    wait_until(lambda: up(server) == 1.0 and pulse.check()[0], 10, "it turns again")


def test_a_taken_address_is_not_up_and_no_fault(server: PageServer, clock: Clock, pulse: Pulse) -> None:
    registry = CollectorRegistry()
    port = int(server.address.rpartition(":")[2])
    with serving_pages(sources(port), pulse, registry, clock):
        assert registry.get_sample_value("groundwatch_pages_up") == 0.0
        assert pulse.check() == (True, "ok")
