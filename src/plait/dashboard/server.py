"""Serve the console: a thin layer over pages, which are pure functions of snapshots.

The server reads files, and writes requests if control is allowed. It holds no lock and keeps
nothing that a query needs, so it may be started and killed at any time.

One thread (`SnapshotReader`) reads twice a second and keeps the last snapshot of each join; pages
are made from those. Open pages learn of news by server-sent events.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.responses import StreamingResponse as Streaming
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from plait.dashboard.access import HEADERS, Keys, judge
from plait.dashboard.metrics import CONTENT_TYPE, exposition
from plait.dashboard.pages.console_pages import (
    ConsoleSite,
    Form,
    control_page,
    decisions_page,
    overview,
    processors_page,
    refused_page,
    view_options,
)
from plait.dashboard.reading.snapshot import JoinSnapshot, Watcher, refreshed
from plait.dashboard.views.plan_preview import preview
from plait.errors import PlaitError
from plait.node.reports.requests import PlanRequest
from plait.spark.control.plan_requests import PlanRequests

_EVERY = 0.5
"""Seconds between two looks at the files."""
_LONG_AGO = 30.0
"""Seconds after which a page says that nothing was read since."""
_PATIENCE = 10.0
"""Seconds in which a request must have come as a whole."""
_LONGEST_FORM = 1 << 16
_JOIN = "plait-join"
"""The cookie with the number of the join that somebody looks at."""
_STATIC = {
    "style.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_ONLY_SHOWS = "This console is read-only. Start it with --control to request plans."
_REFUSED = {
    "wrong host": "This console answers requests to 127.0.0.1 and localhost only. Open the address "
    "that was printed when it was started; from another machine, through a tunnel (ssh -L).",
    "no token": "Open the address that was printed when the console was started: it has a token.",
    "other origin": "A page of another site has sent this request. Open the console's own pages.",
}


class SnapshotReader:
    """Take snapshots of all joins in a thread, again and again."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = watchers
        self.version = 0
        """Another number whenever something is new."""
        self._found = [watcher.snapshot for watcher in watchers]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="plait-console", daemon=True)

    def start(self) -> None:
        """Begin; when this returns, everything was read once."""
        self._read()
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._end.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._end.wait(_EVERY):
            self._read()

    def _read(self) -> None:
        for i, watcher in enumerate(self.watchers):
            found, before = refreshed(watcher), self._found[i]
            if (found.version, found.stale) != (before.version, before.stale):
                self.version += 1
            self._found[i] = found

    def snapshot(self, number: int) -> JoinSnapshot:
        """What was read last of a watcher; if that is long ago, it says so."""
        found = self._found[number]
        if not found.stale and found.read and time.time() - found.read > _LONG_AGO:
            return replace(found, stale="reading it has not ended yet")
        return found


class AccessGuard:
    """Refuse requests without access, and add headers that restrict what pages may do."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HttpRequest(scope)
        token = request.query_params.get("token", "")
        keys, path = self._keys, scope["path"]
        headers = request.headers.items()
        found = judge(keys, request.method, path, headers, request.cookies, token)
        if path.startswith(keys.home):
            scope = {**scope, "root_path": keys.home.rstrip("/")}

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((n.lower().encode(), v.encode()) for n, v in HEADERS.items()),
                ]
            await send(message)

        response: ASGIApp = self._app
        if found == "enter":
            response = RedirectResponse(keys.home, status_code=303)
            response.set_cookie(
                keys.cookie, keys.session, path=keys.home, httponly=True, samesite="strict"
            )
        elif found != "welcome":
            response = _refused(_REFUSED[found])
        await response(scope, receive, answer)


def application(reading: SnapshotReader, keys: Keys, *, control: bool = False) -> ASGIApp:
    """The console as an application; whoever has a server can run it."""
    pages = _Pages(reading, keys, control)
    routes = [
        Route("/", pages.overview),
        Route("/decisions", pages.decisions),
        Route("/processors", pages.processors),
        Route("/control", pages.control),
        Route("/control", pages.ask, methods=["POST"]),
        Route("/join/{number}", pages.choose),
        Route("/events", pages.events),
        Route("/metrics", pages.metrics),
        Route("/static/{name}", pages.static),
    ]
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _not_found, Exception: _failed}
    )
    app.router.redirect_slashes = False
    return AccessGuard(app, keys)


async def _not_found(request: HttpRequest, error: Exception) -> Response:
    """Answer requests for which there is no page."""
    del request
    assert isinstance(error, HTTPException)
    said = "There is no such page here, or it takes no such request. Open the address that was "
    said += "printed when the console was started: its menu has all pages."
    text = refused_page(str(error.detail), said)
    return HTMLResponse(text, status_code=error.status_code, headers=error.headers)


async def _failed(request: HttpRequest, error: Exception) -> Response:
    del request
    said = f"The console cannot answer this ({type(error).__name__}: {error}). The query does not "
    said += "notice. Load the page again; if that does not help, start the console again."
    return HTMLResponse(refused_page("This is a bug in Plait", said), status_code=500)


class _Pages:
    """The handlers of all routes."""

    def __init__(self, reading: SnapshotReader, keys: Keys, control: bool) -> None:
        self._reading = reading
        self._keys = keys
        self._control = control

    def _site(self, request: HttpRequest) -> tuple[ConsoleSite, JoinSnapshot]:
        """The join that somebody looks at, and what was read of it."""
        names = [w.name for w in self._reading.watchers]
        number = _number(request.cookies.get(_JOIN, ""), len(names))
        site = ConsoleSite(names, names[number], self._control, self._keys.csrf)
        return site, self._reading.snapshot(number)

    async def overview(self, request: HttpRequest) -> Response:
        site, snapshot = self._site(request)
        return HTMLResponse(overview(site, snapshot, view_options(request.query_params)))

    async def decisions(self, request: HttpRequest) -> Response:
        site, snapshot = self._site(request)
        return HTMLResponse(decisions_page(site, snapshot, view_options(request.query_params)))

    async def processors(self, request: HttpRequest) -> Response:
        site, snapshot = self._site(request)
        return HTMLResponse(processors_page(site, snapshot))

    async def choose(self, request: HttpRequest) -> Response:
        response = RedirectResponse("../", status_code=303)
        number = _number(request.path_params["number"], len(self._reading.watchers))
        response.set_cookie(
            _JOIN, str(number), path=self._keys.home, httponly=True, samesite="strict"
        )
        return response

    async def control(self, request: HttpRequest) -> Response:
        site, snapshot = self._site(request)
        if not self._control or snapshot.sites is not None:
            return _refused(_ONLY_SHOWS)
        return HTMLResponse(control_page(site, snapshot, Form()))

    async def ask(self, request: HttpRequest) -> Response:
        """Ask the driver for what a form of this console says, and for nothing else."""
        site, snapshot = self._site(request)
        if not self._control or snapshot.sites is not None:
            return _refused(_ONLY_SHOWS)
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length[:9]) > _LONGEST_FORM:
            said = "A form has a Content-Length, which is small. Write a shorter plan."
            return _refused(said, 413 if length else 411)
        try:
            async with asyncio.timeout(_PATIENCE):
                text = (await request.body()).decode("utf-8", "replace")
        except (TimeoutError, ClientDisconnect):
            return _refused("The form has not come as a whole. Send it again.", 408)
        given = dict(parse_qsl(text, keep_blank_values=True))
        if not self._keys.is_form(given.get("csrf", "")):
            return _refused("The form does not come from this console. Load the page again.")
        form = Form(given.get("plan", "").strip(), given.get("strategy", "auto"))
        try:
            asked = _asked(given.get("action", ""), form)
            if asked.plan:
                found = preview(snapshot, asked.plan, asked.strategy)
                if given["action"] == "preview":
                    form = Form(form.plan, form.strategy, found)
                    return HTMLResponse(control_page(site, snapshot, form))
            PlanRequests(Path(snapshot.folder)).ask(asked)
        except PlaitError as error:
            form = Form(form.plan, form.strategy, trouble=str(error))
            return HTMLResponse(control_page(site, snapshot, form), status_code=400)
        return RedirectResponse("control", status_code=303)

    async def events(self, request: HttpRequest) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")

        async def news() -> AsyncIterator[str]:
            before, quiet = -1, 0.0
            while not await request.is_disconnected():
                if (now := self._reading.version) != before:
                    before, quiet = now, 0.0
                    yield f"event: news\ndata: {now}\n\n"
                elif quiet > 10:
                    quiet = 0.0
                    yield ": still here\n\n"
                await asyncio.sleep(_EVERY / 2)
                quiet += _EVERY / 2

        return Streaming(news(), media_type="text/event-stream")

    async def metrics(self, request: HttpRequest) -> Response:
        del request
        snapshot = map(self._reading.snapshot, range(len(self._reading.watchers)))
        found = [one for one in snapshot if one.sites is None]
        return Response(exposition(found), media_type=CONTENT_TYPE)

    async def static(self, request: HttpRequest) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        text = files("plait.dashboard").joinpath(name).read_text(encoding="utf-8")
        return Response(text, media_type=_STATIC[name])


def _refused(said: str, status: int = 403) -> Response:
    return HTMLResponse(refused_page("Refused", said), status_code=status)


def _number(given: str, many: int) -> int:
    """The number of one of `many` joins; anything else is the first.

    >>> _number("1", 3), _number("7", 3), _number("9" * 5000, 3), _number("x", 3)
    (1, 0, 0, 0)
    """
    found = int(given) if given.isdecimal() and len(given) < 8 else 0
    return found if found < many else 0


def _asked(action: str, form: Form) -> PlanRequest:
    """What a form asks for; a preview is one of pinning the plan."""
    plan = "" if action == "release" else form.plan
    meant = "pin" if action == "preview" else action
    given = {"action": meant, "plan": plan, "strategy": form.strategy, "at": time.time()}
    return PlanRequest.from_dict(given)


class TimeoutProtocol(H11Protocol):
    """Close connections on which no whole request comes for some seconds."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come, or all of it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nobody to wait for."""
        self._stop()
        super().connection_lost(exc)

    @property
    def _answers(self) -> bool:
        """Whether a request has come that is being answered."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _watch(self) -> None:
        if self._answers:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(_PATIENCE, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self._answers:
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Console:
    """A running console; `url` opens it, `close` ends it."""

    def __init__(
        self, watchers: Sequence[Watcher], *, port: int = 0, control: bool = False
    ) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self._keys = Keys.new(self.port)
        self._reading = SnapshotReader(watchers)
        app = application(self._reading, self._keys, control=control)
        config = uvicorn.Config(
            app,
            http=TimeoutProtocol,
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self._keys.token}"

    def run(self) -> None:
        """Serve until it is interrupted."""
        self._reading.start()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._reading.stop()

    def start(self) -> Console:
        """Serve in a thread of its own; returns when pages can be opened."""
        self._reading.start()
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="plait-console-server",
            daemon=True,
        )  # fmt: skip
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)
        return self

    def close(self) -> None:
        """End it."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._reading.stop()
        self._socket.close()

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<console {self.url}>"
