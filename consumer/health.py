"""The metrics listener of both processes: /metrics, /healthz and /readyz. No text of an event is ever served here."""

from __future__ import annotations

import gzip
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder, gzip_accepted

log = logging.getLogger(__name__)

Check = Callable[[], tuple[bool, str]]
"""(ok, detail); called in a thread of the listener for every request, so it must not block."""

STUCK_SECONDS = 60.0


class ListenError(Exception):
    """The address cannot be listened on; the message says which, why and what to change."""


def refuse_multiprocess(environ: Mapping[str, str]) -> None:
    """One process per exporter, by design: the Prometheus client's multiprocess mode would be half obeyed.

    Raises:
        ListenError: the mode is switched on in the environment.
    """
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        if name in environ:
            raise ListenError(f"{name} is set, but each process serves its own /metrics: unset it")


class Pulse:
    """When each loop of a process last turned. A loop that has not turned for `limit_seconds` makes `/healthz` fail.

    Only our own loops (poll, inference, an agent) beat here: broker, Redis or judge away is never a reason to be
    restarted, so a loop that waits for one of them goes on beating while it waits.
    """

    def __init__(self, now: Callable[[], float], limit_seconds: float = STUCK_SECONDS) -> None:
        self._now = now
        self._limit = limit_seconds
        self._beats: dict[str, float] = {}

    def beat(self, loop: str) -> None:
        """`loop` turned now. The first beat starts the watch over it."""
        self._beats[loop] = self._now()

    def end(self, loop: str) -> None:
        """`loop` ended on purpose: it is watched no longer."""
        self._beats.pop(loop, None)

    def check(self) -> tuple[bool, str]:
        """(False, which loops and for how long) once any loop has not turned for the limit."""
        now = self._now()
        stuck = [(loop, now - at) for loop, at in list(self._beats.items()) if now - at > self._limit]
        if stuck:
            return False, "; ".join(f"loop {loop} has not turned for {age:.0f} s" for loop, age in sorted(stuck))
        return True, "ok"


class HealthServer:
    """An HTTP listener in a thread of its own. Listening begins when it is made, answering with `start`."""

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        *,
        healthy: Check,
        ready: Check,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Listen on `listen` ("HOST:PORT"; "[::1]:9108" for IPv6; port 0 picks a free one).

        Raises:
            ListenError: busy port, unknown host or missing permission; or the Prometheus client's multiprocess mode.
        """
        refuse_multiprocess(environ)
        # A `_created` series beside every counter would double the series; the library knows one switch for all.
        switch_off: Callable[[], None] = disable_created_metrics
        switch_off()
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        try:
            self._server = _server(host, int(port), registry, {"/healthz": healthy, "/readyz": ready})
        except OSError as error:
            raise ListenError(
                f"cannot listen on {listen}: {error.strerror or error}; stop what holds it, or choose another address "
                "with metrics.scorer.listen or metrics.monitor.listen"
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def address(self) -> str:
        """HOST:PORT that is really listened on."""
        host, port = self._server.server_address[:2]
        name = host.decode() if isinstance(host, bytes) else str(host)
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop answering and free the port; harmless when called twice or before `start`."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(5)
        self._server.server_close()

    def __enter__(self) -> HealthServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _server(host: str, port: int, registry: CollectorRegistry, checks: Mapping[str, Check]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10
        protocol_version = "HTTP/1.1"
        server_version = "groundwatch"
        sys_version = ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._metrics()
            elif path in checks:
                ok, detail = checks[path]()
                self._answer(HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE, f"{detail}\n".encode())
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"/metrics /healthz /readyz\n")

        do_HEAD = do_GET

        def _metrics(self) -> None:

            encoder, content_type = choose_encoder(self.headers.get("Accept") or "")
            try:
                body = encoder(registry)
            except Exception:
                log.exception("/metrics could not be written")
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"metrics could not be written; see the log\n")
                return
            packed = gzip_accepted(self.headers.get("Accept-Encoding") or "")
            self._answer(HTTPStatus.OK, gzip.compress(body, 1) if packed else body, content_type, packed)

        def _answer(
            self,
            status: HTTPStatus,
            body: bytes,
            content_type: str = "text/plain; charset=utf-8",
            packed: bool = False,
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            log.debug(format, *arguments)

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True
        # Closing must not wait for a scraper that keeps its connection open.
        block_on_close = False

        def handle_error(self, request: object, client_address: object) -> None:
            log.debug("a scraper went away", exc_info=True)

    return Server((host, port), Handler)
