"""The listener of the pages: a thread and a loop of its own, so that no page holds up the stream of scores."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from consumer.case_store import CaseStoreError
from consumer.health import ListenError, Pulse
from consumer.logs import one_line
from consumer.pages.entry import Entry, read_token
from consumer.pages.rendering import Renderer, files
from consumer.pages.routes import VISITOR, NotShown, Routes
from consumer.pages.sources import Sources
from metrics.exposition import PREFIX

log = logging.getLogger(__name__)
requests = logging.getLogger(f"{__name__}.requests")
"""What aiohttp says of requests that it could not hand over."""

THREADS = 4
FORM_BYTES = 64 * 1024
AGAIN_SECONDS = 5.0
"""How often an address that another process holds is tried again: a standby beside an active monitor takes it over."""
STOP_SECONDS = 3.0
LOOP = "pages"
BEAT_SECONDS = 1.0
LATE_SECONDS = 10.0
"""A loop that has not turned for so long serves nobody."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "groundwatch",
}
OPEN = ("/login", "/static/")
"""What is answered to anybody."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _without_trace(record: logging.LogRecord) -> bool:
    """A request that is no HTTP, or too long, is its sender's fault: worth a line, never a trace of ours."""
    fault = record.exc_info[1] if record.exc_info else None
    if isinstance(fault, HttpProcessingError):
        record.msg, record.args = "a request was refused: %s %s", (fault.code, one_line(fault.message)[:200])
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


requests.addFilter(_without_trace)


class PageServer(Collector):
    """Serves from `start` until `close`."""

    def __init__(self, sources: Sources, pulse: Pulse, monotonic: Callable[[], float]) -> None:
        """`pulse` is told that the loop turns; `monotonic` measures how long it has not.

        Raises:
            EntryError: the token cannot be read.
        """
        self._sources = sources
        pages = sources.settings.pages
        self._listen = pages.listen
        self._entry = Entry(pages, read_token(pages), sources.now, self._shared_secret)
        self._pulse = pulse
        self._monotonic = monotonic
        self._beaten: float | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._first_try = threading.Event()
        self._fault: ListenError | None = None
        self._thread = threading.Thread(target=self._run, name="pages", daemon=True)
        self.address = ""
        """HOST:PORT that is really listened on; empty until then."""

    def start(self) -> None:
        """
        Raises:
            ListenError: the address is none of this machine's, or may not be listened on. A taken one is waited for.
        """
        self._pulse.beat(LOOP)
        self._thread.start()
        self._first_try.wait()
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(STOP_SECONDS)

    def collect(self) -> Iterator[Metric]:
        """For /metrics: are the pages served? Called in another thread."""
        turned = self._beaten is not None and self._monotonic() - self._beaten < LATE_SECONDS
        up = GaugeMetricFamily(f"{PREFIX}pages_up", "1 while the pages are served, 0 while nobody listens or answers.")
        up.add_metric([], float(turned and bool(self.address) and self._thread.is_alive()))
        yield up

    def _shared_secret(self) -> bytes | None:
        if self._sources.store is None:
            return None
        try:
            return self._sources.store.shared_secret() or None
        except CaseStoreError as error:
            log.info("forms hold until this monitor ends, for their secret cannot be read: %s", error)
            return None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            # No beat comes any more: /healthz will say so.
            log.exception("the pages are not served any more")
        finally:
            self._first_try.set()
            self._loop.close()

    async def _serve(self) -> None:
        with ThreadPoolExecutor(THREADS, "pages") as threads:
            runner = web.AppRunner(
                self._app(threads), access_log=None, handle_signals=False, shutdown_timeout=1.0, logger=requests
            )
            await runner.setup()
            beating = asyncio.ensure_future(self._beat())
            try:
                if await self._listening(runner):
                    await self._stop.wait()
            finally:
                beating.cancel()
                await runner.cleanup()
        self._pulse.end(LOOP)

    async def _beat(self) -> None:
        while True:
            self._beaten = self._monotonic()
            self._pulse.beat(LOOP)
            await asyncio.sleep(BEAT_SECONDS)

    async def _listening(self, runner: web.AppRunner) -> bool:
        """False where it was told to stop, or cannot, before it could listen."""
        host, _, port = self._listen.rpartition(":")
        waited = False
        while not self._stop.is_set():
            site = web.TCPSite(runner, host.strip("[]"), int(port))
            try:
                await site.start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    self._fault = ListenError(
                        f"cannot listen on {self._listen}: {error.strerror or error}; choose another address with "
                        'pages.listen, or pages.listen = "" for no pages'
                    )
                    return False
                if not waited:
                    log.warning("no pages yet: another process listens on %s (pages.listen)", self._listen)
                waited = True
                self._first_try.set()
                try:
                    await asyncio.wait_for(self._stop.wait(), AGAIN_SECONDS)
                except TimeoutError:
                    continue
            else:
                found = runner.addresses[0]
                self.address = f"[{found[0]}]:{found[1]}" if ":" in found[0] else f"{found[0]}:{found[1]}"
                log.info("pages on http://%s/", self.address)
                self._first_try.set()
                return True
        return False

    def _app(self, threads: ThreadPoolExecutor) -> web.Application:
        loaded = files()
        routes = Routes(self._sources, self._entry, Renderer(loaded), loaded, threads)

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self._entry.knows_host(request.host):
                return web.Response(
                    status=421, text="These pages are not served under this name; name it in pages.hosts.\n"
                )
            visitor = self._entry.visitor(request.remote or "", request.headers, request.cookies)
            if visitor is not None:
                request[VISITOR] = visitor
            elif not request.path.startswith(OPEN):
                return _turned_away(request)
            try:
                return await handler(request)
            except web.HTTPException as found:
                if found.status < 400:
                    raise
                return await routes.fault(request, found.status, f"{found.reason}.")
            except NotShown as why:
                return await routes.fault(request, why.status, str(why))
            except CaseStoreError as error:
                return await routes.fault(request, 503, f"Case files cannot be read now: {error}.")
            except Exception:
                log.exception("a page could not be made: %s", request.path)
                return await routes.fault(request, 500, "This page could not be made; the log of the monitor says why.")

        app = web.Application(middlewares=[guard], client_max_size=FORM_BYTES)
        app.router.add_routes(routes.table())
        app.on_response_prepare.append(_with_headers)
        return app


def _turned_away(request: web.Request) -> web.StreamResponse:
    """To the form where a person signs in; a program is told what is missing."""
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        return web.Response(status=303, headers={"Location": f"/login?{urlencode({'next': request.path_qs})}"})
    return web.Response(
        status=401, text="Sign in, or send Authorization: Bearer TOKEN.\n", headers={"WWW-Authenticate": "Bearer"}
    )


async def _with_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


@contextmanager
def serving_pages(
    sources: Sources, pulse: Pulse, registry: CollectorRegistry, monotonic: Callable[[], float]
) -> Iterator[None]:
    """The pages are served meanwhile, and `registry` tells whether they are; where `pages.listen` is empty, one
    line says that they are not.

    Raises:
        EntryError: the token cannot be read.
        ListenError: see `PageServer.start`.
    """
    if not sources.settings.pages.listen:
        log.info("no pages: pages.listen is empty")
        yield
        return
    server = PageServer(sources, pulse, monotonic)
    server.start()
    registry.register(server)
    try:
        yield
    finally:
        server.close()
