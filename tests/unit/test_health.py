"""The metrics listener, over real sockets."""

from __future__ import annotations

import gzip
import http.client
import socket
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.registry import Collector

from consumer.health import HealthServer, ListenError, Pulse

OK = (True, "ok")


def get(address: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
    finally:
        connection.close()


def serve(registry: CollectorRegistry, **checks: Callable[[], tuple[bool, str]]) -> HealthServer:
    return HealthServer(
        "127.0.0.1:0", registry, healthy=checks.get("healthy", lambda: OK), ready=checks.get("ready", lambda: OK)
    )


def test_metrics_in_both_formats_and_exemplars_only_in_openmetrics() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("h_seconds", "h", registry=registry, buckets=(1.0,))
    histogram.observe(0.5, {"trace_id": "abc"})
    Counter("c", "c", registry=registry).inc()
    with serve(registry) as server:
        status, text, headers = get(server.address, "/metrics")
        assert status == 200
        assert headers["content-type"].startswith("text/plain")
        assert b"c_total 1.0" in text
        assert b"abc" not in text
        accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
        status, text, headers = get(server.address, "/metrics", accept)
        assert headers["content-type"].startswith("application/openmetrics-text")
        assert b'# {trace_id="abc"} 0.5' in text
        assert text.endswith(b"# EOF\n")
        assert b"_created" not in text
        status, packed, headers = get(server.address, "/metrics", {"Accept-Encoding": "gzip"})
        assert headers["content-encoding"] == "gzip"
        assert b"c_total 1.0" in gzip.decompress(packed)


def test_checks_decide_the_status_and_are_asked_each_time() -> None:
    state = {"ready": (False, "rebuilding: 10 of 20")}
    with serve(CollectorRegistry(), ready=lambda: state["ready"]) as server:
        assert get(server.address, "/readyz")[:2] == (503, b"rebuilding: 10 of 20\n")
        assert get(server.address, "/healthz")[:2] == (200, b"ok\n")
        state["ready"] = (True, "ready")
        assert get(server.address, "/readyz")[:2] == (200, b"ready\n")
        assert get(server.address, "/elsewhere")[0] == 404


def test_a_busy_port_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ListenError, match=rf"cannot listen on {address}.*in use.*metrics\.monitor\.listen"):
            HealthServer(address, CollectorRegistry(), healthy=lambda: OK, ready=lambda: OK)


def test_the_multiprocess_mode_is_refused() -> None:  # field case 54
    with pytest.raises(ListenError, match="PROMETHEUS_MULTIPROC_DIR is set"):
        HealthServer(
            "127.0.0.1:0", CollectorRegistry(), healthy=lambda: OK, ready=lambda: OK,
            environ={"PROMETHEUS_MULTIPROC_DIR": "/tmp/x"},
        )  # fmt: skip


def test_an_unknown_host_is_one_clear_error() -> None:
    with pytest.raises(ListenError, match="cannot listen on no-such-host"):
        HealthServer("no-such-host.invalid:9", CollectorRegistry(), healthy=lambda: OK, ready=lambda: OK)


def test_a_collector_that_raises_costs_one_scrape_not_the_listener() -> None:
    class Broken(Collector):
        def collect(self):  # type: ignore[no-untyped-def]
            raise RuntimeError("dictionary changed size during iteration")

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Broken())
    with serve(registry) as server:
        assert get(server.address, "/metrics")[0] == 500
        assert get(server.address, "/healthz")[0] == 200


def test_closing_frees_the_port_while_a_scraper_holds_its_connection() -> None:
    server = serve(CollectorRegistry())
    server.start()
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))):
        server.close()
        server.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind((host, int(port)))


def test_pulse_fails_only_for_a_loop_that_has_not_turned_for_the_limit() -> None:
    clock = {"now": 1000.0}
    pulse = Pulse(lambda: clock["now"])
    assert pulse.check() == OK
    pulse.beat("poll")
    pulse.beat("agent")
    clock["now"] += 59
    pulse.beat("poll")
    assert pulse.check() == OK
    clock["now"] += 2
    ok, detail = pulse.check()
    assert not ok
    assert detail == "loop agent has not turned for 61 s"
    pulse.end("agent")
    assert pulse.check() == OK
