"""What each address answers. Whatever waits for Redis or Kafka, or takes long, is done in threads of the pages' own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from aiohttp import web

from consumer import logs
from consumer.case_export import exported
from consumer.case_file import CaseFile
from consumer.case_filter import case_key
from consumer.case_store import CaseStore, CaseStoreError
from consumer.label import BY_CHARACTERS, NOTE_CHARACTERS, Label
from consumer.logs import one_line
from consumer.pages.addresses import AddressError, Query, case_address, read_query
from consumer.pages.answer import CaseView, case_view
from consumer.pages.entry import FORM_COOKIE, SESSION_COOKIE, SESSION_SECONDS, Entry, Visitor, new_form_cookie
from consumer.pages.labels import LabelRefused, label_case
from consumer.pages.listing import Listing, listed, rows_of
from consumer.pages.neighbours import Neighbours, neighbours
from consumer.pages.overview import overview, usual
from consumer.pages.rendering import File, Renderer
from consumer.pages.sources import Sources
from consumer.segment_choice import unlisted

log = logging.getLogger(__name__)
audit = logging.getLogger(logs.AUDIT)

T = TypeVar("T")
VISITOR = web.RequestKey("visitor", Visitor)
EXPORT_BATCH = 20
NAME_COOKIE = "groundwatch_name"
"""The name that somebody last labelled under."""
YEAR_SECONDS = 365 * 86_400
GUESS_SECONDS = 1.0
"""What a wrong token costs."""
NO_STORE = (
    "Case files are not kept: redis.cases_url is not set. `groundwatch cases` on a terminal reads them from the topic."
)


class NotShown(Exception):
    """A page with this status that says in one line why there is no other."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Routes:
    """The handlers of one listener."""

    def __init__(
        self, sources: Sources, entry: Entry, renderer: Renderer, loaded: dict[str, File], threads: Executor
    ) -> None:
        self._sources = sources
        self._entry = entry
        self._renderer = renderer
        self._files = loaded
        self._threads = threads

    def table(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.overview),
            web.get("/cases", self.cases),
            web.get("/cases.jsonl", self.export),
            web.get("/cases/{reference:.+}", self.case),
            web.get("/trace/{reference:.+}", self.trace),
            web.post("/label/{key:[0-9a-f]{48}}", self.label),
            web.post("/forget/{key:[0-9a-f]{48}}", self.forget),
            web.get("/login", self.login),
            web.post("/login", self.enter),
            web.post("/logout", self.leave),
            web.get("/static/{name}", self.file),
        ]

    async def overview(self, request: web.Request) -> web.Response:
        windows = self._sources.settings.monitor.windows
        window = request.query.get("window", "")
        if window and window not in windows:
            return await self.fault(request, 404, f"There is no window {window!r}; there are: {', '.join(windows)}.")
        found = await self._apart(lambda: overview(self._sources, window))
        return await self._page(request, "overview.html", page=found, usual=usual(windows))

    async def cases(self, request: web.Request) -> web.Response:
        store = self._store()
        try:
            query = self._query(request)
        except AddressError as error:
            return await self._list(request, Query(), Listing([], [], None), str(error), 400)
        try:
            found = await self._apart(lambda: listed(store, query, self._sources.now()))
        except AddressError as error:
            return await self._list(request, query, Listing([], [], None), str(error), 400)
        except CaseStoreError as error:
            return await self._list(
                request, query, Listing([], [], None), f"Case files cannot be read now: {error}.", 503
            )
        return await self._list(request, query, found, "", 200)

    async def _list(self, request: web.Request, query: Query, found: Listing, fault: str, status: int) -> web.Response:
        allow = self._sources.settings.segments.allow
        return await self._page(
            request, "cases.html", status,
            query=query, listing=found, fault=fault, segments=allow, unlisted=unlisted(query.segment, allow),
        )  # fmt: skip

    def _query(self, request: web.Request) -> Query:
        """
        Raises:
            AddressError: a value that cannot be.
        """
        return read_query(request.query.items(), self._sources.settings.segments.allow)

    async def case(self, request: web.Request) -> web.Response:
        reference = request.match_info["reference"]
        store = self._store()
        found = await self._find(store, reference)
        view, near, label = await self._apart(lambda: self._view(store, found[0]))
        others = [case_key(case) for case in found[1:]]
        name = unquote(request.cookies.get(NAME_COOKIE, ""))[:BY_CHARACTERS]
        return await self._page(
            request, "case.html", view=view, near=near, others=others, label=label, name=name,
            most_by=BY_CHARACTERS, most_note=NOTE_CHARACTERS,
        )  # fmt: skip

    def _view(self, store: CaseStore, case: CaseFile) -> tuple[CaseView, Neighbours, Label | None]:
        sources = self._sources
        progress = sources.progress()
        spans = []
        if progress is not None and progress.rebuilt:
            spans = sources.looks.spans()
        keys = sources.looks.book.segment_keys
        view = case_view(case, spans, keys, sources.baseline, sources.settings.pages.trace_link)
        return view, neighbours(store, case), store.labels([case]).get(view.key)

    async def trace(self, request: web.Request) -> web.Response:
        """A trace id, an event id, or the digits that an exemplar shows of a long one."""
        reference = request.match_info["reference"]
        store = self._store()
        found = await self._find(store, reference)
        if len(found) == 1:
            raise web.HTTPFound(case_address(case_key(found[0])))
        rows = await self._apart(lambda: rows_of(store, found))
        return await self._page(request, "trace.html", reference=reference, rows=rows)

    async def export(self, request: web.Request) -> web.StreamResponse:
        """The cases that match as events, one a line, as `groundwatch cases export` writes them."""
        store = self._store()
        try:
            query = self._query(request).first_page()
            wanted = query.filter(self._sources.now())
            keys = await self._apart(lambda: store.keys(wanted))
        except AddressError as error:
            raise NotShown(400, f"{error}.") from None
        answer = web.StreamResponse(
            headers={"Content-Disposition": 'attachment; filename="cases.jsonl"', "Cache-Control": "no-store"}
        )
        answer.content_type, answer.charset = "application/jsonl", "utf-8"
        await answer.prepare(request)
        written = 0
        try:
            for start in range(0, len(keys), EXPORT_BATCH):
                lines = await self._apart(partial(_lines, store, keys[start : start + EXPORT_BATCH]))
                await answer.write("".join(f"{line}\n" for line in lines).encode())
                written += len(lines)
            await answer.write_eof()
        finally:
            audit.info("audit: %s exported %d case files: %s", _who(request), written, query.address("/cases.jsonl"))
        return answer

    async def label(self, request: web.Request) -> web.Response:
        """Good, bad, or none any more: into Kafka, acknowledged, then beside the case."""
        form = await _form(request)
        refused = await self._refused(request, form)
        if refused:
            return await self.fault(request, 403, refused)
        store, key, verdict = self._store(), request.match_info["key"], str(form.get("verdict", ""))
        visitor = request.get(VISITOR)
        by = visitor.name if visitor is not None and visitor.name else str(form.get("by", ""))
        work = partial(label_case, self._sources, store, key, verdict, by, str(form.get("note", "")))
        try:
            done = await self._apart(work)
        except LabelRefused as error:
            return await self.fault(request, error.status, str(error))
        audit.info("audit: %s labelled the case %s %s, by the name of %s", _who(request), key, verdict, one_line(by))
        if done.not_indexed is not None:
            return await self._page(request, "labelled.html", key=key, why=done.not_indexed)
        answer = web.Response(status=303, headers={"Location": f"{case_address(key)}#label"})
        if not (visitor is not None and visitor.name):
            answer.set_cookie(
                NAME_COOKIE, quote(by), max_age=YEAR_SECONDS, httponly=True, samesite="Lax",
                secure=self._is_encrypted(request),
            )  # fmt: skip
        return answer

    async def forget(self, request: web.Request) -> web.Response:
        form = await _form(request)
        refused = await self._refused(request, form)
        if refused:
            return await self.fault(request, 403, refused)
        store, key = self._store(), request.match_info["key"]
        if form.get("sure") != "yes":
            return await self.fault(request, 400, "Tick the box to say that the case shall be forgotten for good.")
        try:
            removed = await self._apart(lambda: store.forget([key]))
        except CaseStoreError as error:
            return await self.fault(request, 503, f"The case was not forgotten: {error}.")
        audit.info("audit: %s removed %d case files from Redis by id: %s", _who(request), removed, key)
        return await self._page(request, "forgotten.html", key=key, removed=removed)

    async def login(self, request: web.Request) -> web.Response:
        return await self._page(request, "login.html", wrong=False, onward=_onward(request.query.get("next", "")))

    async def enter(self, request: web.Request) -> web.Response:
        form = await _form(request)
        onward = _onward(str(form.get("next", "")))
        if not self._entry.is_token(str(form.get("token", "")).strip()):
            audit.info("audit: %s was refused: a wrong token", _who(request))
            await asyncio.sleep(GUESS_SECONDS)
            return await self._page(request, "login.html", 403, wrong=True, onward=onward)
        audit.info("audit: %s signed in", _who(request))
        answer = web.Response(status=303, headers={"Location": onward})
        answer.set_cookie(
            SESSION_COOKIE, self._entry.session(), max_age=int(SESSION_SECONDS), httponly=True, samesite="Lax",
            secure=self._is_encrypted(request),
        )  # fmt: skip
        return answer

    async def leave(self, request: web.Request) -> web.Response:
        refused = await self._refused(request, await _form(request))
        if refused:
            return await self.fault(request, 403, refused)
        answer = web.Response(status=303, headers={"Location": "/login"})
        answer.del_cookie(SESSION_COOKIE)
        return answer

    async def file(self, request: web.Request) -> web.Response:
        found = self._files.get(request.match_info["name"])
        if found is None:
            return await self.fault(request, 404, "There is no such file.")
        headers = {"Cache-Control": "public, max-age=86400"}
        return web.Response(body=found.body, content_type=found.content_type, charset="utf-8", headers=headers)

    async def fault(self, request: web.Request, status: int, said: str) -> web.Response:
        """A page that says in one line what is wrong."""
        return await self._page(request, "fault.html", status, said=said)

    async def _page(self, request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
        cookie = request.cookies.get(FORM_COOKIE, "")
        given = cookie or new_form_cookie()
        sources = self._sources
        values |= {
            "path": request.path,
            "form_key": partial(self._entry.form_key, given),
            "visitor": request.get(VISITOR),
            "may_leave": self._entry.takes_token and SESSION_COOKIE in request.cookies,
            "version": sources.version,
            "now": sources.now(),
            "kept_days": sources.settings.cases.ttl_hours / 24,
            "most": sources.settings.cases.most,
        }
        text = await self._apart(lambda: self._renderer.render(template, **values))
        body = text.encode("utf-8", "replace")
        answer = web.Response(
            status=status, body=body, content_type="text/html", charset="utf-8", headers={"Cache-Control": "no-store"}
        )
        if not cookie:
            answer.set_cookie(FORM_COOKIE, given, httponly=True, samesite="Lax", secure=self._is_encrypted(request))
        return answer

    def _store(self) -> CaseStore:
        """
        Raises:
            NotShown: case files are not kept.
        """
        if self._sources.store is None:
            raise NotShown(503, NO_STORE)
        return self._sources.store

    async def _find(self, store: CaseStore, reference: str) -> list[CaseFile]:
        """One case file or more.

        Raises:
            NotShown: there is none.
            CaseStoreError: Redis is away.
        """
        found = await self._apart(lambda: store.find(reference))
        if not found:
            raise NotShown(404, _unknown(reference))
        return found

    async def _refused(self, request: web.Request, form: Mapping[str, str]) -> str:
        """Why a form is not obeyed; empty where it is."""
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        cookie = request.cookies.get(FORM_COOKIE, "")
        origin = request.headers.get("Origin")
        given = str(form.get("form_key", ""))
        own = await self._apart(lambda: self._entry.may_post(cookie, given, request.host, origin))
        if site not in ("same-origin", "none") or not own:
            return (
                "Nothing was changed: this form does not come from a page of this monitor, or from one that was loaded "
                "too long ago. Go back, reload the page and repeat."
            )
        return ""

    def _is_encrypted(self, request: web.Request) -> bool:
        proxied = request.remote is not None and self._entry.is_proxy(request.remote)
        return request.secure or (proxied and request.headers.get("X-Forwarded-Proto") == "https")

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _lines(store: CaseStore, keys: list[str]) -> list[str]:
    """One an exported case; a case whose text the broker had refused is left out."""
    cases = store.get(keys)
    labels = store.labels(cases)
    return [line for case in cases if (line := exported(case, labels.get(case_key(case)))) is not None]


def _who(request: web.Request) -> str:
    visitor = request.get(VISITOR)
    address = request.remote or "unknown address"
    return f"{visitor.name} at {address}" if visitor is not None and visitor.name else f"somebody at {address}"


def _onward(path: str) -> str:
    """Where to after signing in: a path of ours, never another site."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\", "/login")) and path.isprintable()
    return path if safe else "/"


def _unknown(reference: str) -> str:
    return (
        f"There is no case file of {reference!r}: only flagged and audited answers get one, and it may have expired or "
        "been forgotten."
    )


async def _form(request: web.Request) -> Mapping[str, str]:
    """The fields of a form as our pages send it; none where the body is something else.

    Raises:
        NotShown: the text is not in the character set that it names.
    """
    if request.content_type != "application/x-www-form-urlencoded":
        return {}
    try:
        fields = await request.post()
    except (LookupError, ValueError):
        raise NotShown(400, "This form cannot be read: its text is not in the character set that it names.") from None
    return {name: str(value).encode("utf-8", "replace").decode() for name, value in fields.items()}
