"""The web server for the sessions of a folder: one page, a JSON API, and a stream of events.

    /  /runs  /s/ID  /r/ID       the page; also /s/ID/NUMBER and /r/ID/NUMBER, a row
    POST /api/login              the token → the cookie
    /api/sessions?q=             the sessions that match a filter of `ls`
    /api/runs                    the runs of hosts
    /api/events?session=         server-sent events: the list or the session has changed
    /api/s/ID/rows               a window of rows: q, order, http, first, count
    /api/s/ID/rows/NUMBER        a row with its bodies
    /api/s/ID/rows/NUMBER/views  the user's cells of a row, and the views of its contents
    /api/s/ID/rows/NUMBER/app    the page of an app in a response, only with `--preview-apps`
    /api/s/ID/place              the place of a row (number), or of the next error (from, step)
    /api/s/ID/timeline           a window of the requests over time: begin, end, parts, q
    /api/s/ID/held/TICKET        the text of a held message, and its differences from the lockfile
    POST /api/s/ID/control       an order of `control.SessionControl`, only with `--allow-control`
    /api/s/ID/play               the servers that a replay or mock of the session may use, as the next two
    /api/s/ID/play/LIST          a window of its steps, requests or interactions: first, count
    POST /api/s/ID/play          an order of `play.Plays`, only with `--allow-control`, and over loopback
    /api/call?session=           what a page may call: the live session, and servers
    /api/call/NUMBER             the state of a call
    POST /api/call               an order of `call.WebCalls`, only with `--allow-control`; a server only over loopback
    /api/s/ID/REPORT             a report of `reports.REPORTS`: stats, context, findings …

ID in `/api/s/ID` is a session, or `run:` and the id of a run: its sessions as one, in order of time.
Every error is `{"error": TEXT}`, an invalid filter also has `start` and `end`, its characters.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from ipaddress import ip_address
from typing import Any

from aiohttp import web

from mcpspy.analysis.export.base import dumps
from mcpspy.core.query.absent import absent_name
from mcpspy.core.query.completion import MESSAGE_FIELDS, MESSAGE_VALUES, completed, continuing
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.parser import parse
from mcpspy.core.query.sessions import FIELDS as SESSION_FIELDS
from mcpspy.core.recording.origin import HOST
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.listed_session import ListedSession, matching, short_words, values_of_fields
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.runs import RUN, RecordedRun, named_run
from mcpspy.io.recording.session_counts import CountCache, is_too_large
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.text.terminal import bug_line
from mcpspy.ui.views.extension import Extension
from mcpspy.ui.web import page, reports, runs
from mcpspy.ui.web.access import HEADERS, LOGIN, Access
from mcpspy.ui.web.call import WebCalls
from mcpspy.ui.web.control import SessionControl
from mcpspy.ui.web.play import Plays
from mcpspy.ui.web.preview import OFF, html_of
from mcpspy.ui.web.preview import page as preview_page
from mcpspy.ui.web.runs import RecentRuns, described
from mcpspy.ui.web.session import WebSession, is_pending

OPEN = 4
"""Sessions whose indexes are kept, unless a page shows more."""

NEWEST = 200
"""Number of sessions whose names complete a filter."""

LISTED = 500
"""Maximum sessions of a list; a filter finds the others."""

SCANNED = 1.0
"""Seconds between two scans of the folder while a page shows it."""

EVERY = 0.2
"""Seconds between two checks for news."""

WHILE_READING = 1.0
"""The same while a long file is read: each event makes the page load its rows again."""

HEARTBEAT = 15.0
"""Seconds after which an event without news is sent: a broken connection is noticed."""


class WebServer:
    def __init__(
        self,
        folder: str | None,
        access: Access,
        *,
        allows_control: bool = False,
        preview: str = OFF,
        extension: Extension | None = None,
    ) -> None:
        self._access = access
        self._extension = extension or Extension(shows_images=False)
        self._control = SessionControl() if allows_control else None
        self._plays = Plays(sessions_folder(folder)) if allows_control else None
        self._calls = WebCalls(sessions_folder(folder)) if allows_control else None
        self._catalog = Catalog(folder)
        self._counts = CountCache(self._catalog)
        self._sessions: Sequence[Summary] = ()
        self._by_key: dict[str, Summary] = {}
        self._scanned = 0.0
        self._scanning = asyncio.Lock()
        self._runs = RecentRuns()
        self._open: OrderedDict[str, WebSession] = OrderedDict()
        self._is_ending = False
        self._preview = preview
        self._page, self._policy = page.page(frames=preview != OFF)

    def runner(self) -> web.AppRunner:
        """Return the server of the page. Its log would be a traceback for each malformed request."""
        silent = logging.Logger("aiohttp", logging.CRITICAL)
        return web.AppRunner(self._application(), access_log=None, logger=silent, shutdown_timeout=1.0)

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._access.check, self._errors])
        get = application.router.add_get
        for path in ("/", "/runs", "/s/{id}", "/s/{id}/{number}", "/r/{id}", "/r/{id}/{number}"):
            get(path, self._document)
        application.router.add_post(LOGIN, self._access.login)
        get("/api/sessions", self._list)
        get("/api/runs", self._list_runs)
        get("/api/events", self._events)
        get("/api/s/{id}/rows", self._rows)
        get("/api/s/{id}/rows/{number}", self._row)
        get("/api/s/{id}/rows/{number}/views", self._views)
        get("/api/s/{id}/rows/{number}/app", self._app)
        get("/api/s/{id}/place", self._place)
        get("/api/s/{id}/timeline", self._timeline)
        get("/api/s/{id}/held/{ticket}", self._held)
        application.router.add_post("/api/s/{id}/control", self._order)
        get("/api/s/{id}/play", self._proposals)
        get("/api/s/{id}/play/{list}", self._play_rows)
        application.router.add_post("/api/s/{id}/play", self._play)
        get("/api/call", self._callable)
        get("/api/call/{call}", self._call_state)
        application.router.add_post("/api/call", self._call)
        get("/api/complete", self._complete)
        get("/api/s/{id}/complete", self._complete_messages)
        get("/api/s/{id}/{report}", self._report)
        application.on_shutdown.append(self._end_events)
        application.on_cleanup.append(self._close)
        return application

    async def _end_events(self, _: web.Application) -> None:
        self._is_ending = True

    async def _close(self, _: web.Application) -> None:
        if self._plays is not None and self._calls is not None:
            await asyncio.gather(self._plays.close(), self._calls.close())
        await asyncio.gather(*(session.close() for session in self._open.values()))
        await asyncio.to_thread(self._catalog.save)

    @web.middleware
    async def _errors(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer an error of the request as JSON."""
        try:
            return await handler(request)
        except QueryError as error:
            found = {"error": sanitize(str(error)), "start": error.start, "end": error.end}
            return _json(found, 400)
        except (McpspyError, OSError) as error:
            return _json({"error": sanitize(str(error))}, 409)
        except ValueError as error:
            return _json({"error": sanitize(str(error))}, 400)
        except web.HTTPException as error:
            return _json({"error": error.text or error.reason}, error.status)
        except Exception as error:  # The page shows it, and the server continues.
            return _json({"error": bug_line(error, 300)}, 500)

    async def _document(self, _: web.Request) -> web.Response:
        return web.Response(
            text=self._page, content_type="text/html", headers={"Content-Security-Policy": self._policy}
        )

    async def _list(self, request: web.Request) -> web.Response:
        await self._scan()
        found, hint = [ListedSession(summary, self._catalog) for summary in self._sessions], ""
        if text := request.query.get("q", "").strip():
            found, hint = await asyncio.to_thread(matching, text, found)
        facts = {"total": len(found), "trouble": self._catalog.trouble, "hint": sanitize(hint)}
        return _json({"sessions": [*map(self._listed, found[:LISTED])], **facts})

    async def _complete(self, request: web.Request) -> web.Response:
        """Answer how a filter of sessions may continue."""
        text = request.query.get("q", "")
        candidates = completed(text, SESSION_FIELDS.names, values_of_fields(self._sessions[:NEWEST]))
        return _json({"terms": continuing(text, candidates)})

    async def _complete_messages(self, request: web.Request) -> web.Response:
        """Answer how a filter of messages may continue."""
        session, text = await self._session(request.match_info["id"]), request.query.get("q", "")
        candidates = completed(text, MESSAGE_FIELDS, MESSAGE_VALUES, session.model.names)
        return _json({"terms": continuing(text, candidates)})

    async def _list_runs(self, _: web.Request) -> web.Response:
        found = await self._found_runs()
        latest = [described(each, self._count, self._key) for each in reversed(found[-LISTED:])]
        return _json({"runs": latest, "total": len(found)})

    async def _found_runs(self) -> list[RecordedRun]:
        await self._scan()
        return await self._runs.among(self._sessions)

    def _count(self, summary: Summary, name: str) -> int | None:
        counts = self._counts.of(summary)
        return None if counts is None else getattr(counts, name)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send an event for each change, at most five per second, until the page closes the stream."""
        key = request.query.get("session")
        session = None if key is None else await self._session(key)
        if session is not None:
            await session.reach(sys.maxsize)  # The first facts are whole if that is soon.
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        plays = self._plays if key is not None and not key.startswith(RUN) and _is_local(request) else None
        sent: Any = None
        sent_at = 0.0
        async with AsyncExitStack() as stack:
            stack.enter_context(_reading(session))
            if self._control is not None and session is not None and session.is_controllable:
                await stack.enter_async_context(self._control.attached(str(key), session))
            while not self._is_ending:
                if key is not None and session is not await self._session(key):
                    return response  # The run has another session: the page connects again.
                if session is None:
                    version = await self._list_version()
                else:
                    version = [session.version, self._state(key), plays and plays.version(str(key))]
                if version != sent or time.monotonic() > sent_at + HEARTBEAT:
                    sent, sent_at = version, time.monotonic()
                    facts = {} if session is None else session.facts() | {"control": self._state(key)}
                    facts |= {} if session is None or plays is None else {"play": plays.state(str(key))}
                    facts |= {} if self._calls is None else {"calls": True}
                    try:
                        await response.write(f"retry: 1000\ndata: {dumps(facts)}\n\n".encode())
                    except ConnectionError:
                        return response
                is_reading = session is not None and session.is_behind
                await asyncio.sleep(WHILE_READING if is_reading else EVERY)
        return response

    def _state(self, key: str | None) -> dict[str, Any] | None:
        """Return the state of a session's control; None if the page may not control it."""
        return None if self._control is None or key is None else self._control.state(key)

    async def _held(self, request: web.Request) -> web.Response:
        key, ticket = request.match_info["id"], int(request.match_info["ticket"])
        held, session = self._controlled().held(key, ticket), await self._session(key)
        text = held.data.decode("utf-8", "replace")
        return _json({"text": text, "differences": await session.differences(ticket)})

    async def _order(self, request: web.Request) -> web.Response:
        order = await request.json()
        if not isinstance(order, dict):
            raise web.HTTPBadRequest(text="an order is an object")
        return _json(await self._controlled().execute(request.match_info["id"], order))

    async def _proposals(self, request: web.Request) -> web.Response:
        plays, key = self._playing(request), request.match_info["id"]
        return _json(await plays.propose(key, await self._summary(key)))

    async def _play_rows(self, request: web.Request) -> web.Response:
        first, count = int(request.query.get("first", 0)), int(request.query.get("count", 100))
        key, name = request.match_info["id"], request.match_info["list"]
        return _json(self._playing(request).window(key, name, first, count))

    async def _play(self, request: web.Request) -> web.Response:
        plays, key, order = self._playing(request), request.match_info["id"], await request.json()
        if not isinstance(order, dict):
            raise web.HTTPBadRequest(text="an order is an object")
        return _json(await plays.execute(key, await self._summary(key), order))

    async def _callable(self, request: web.Request) -> web.Response:
        calls, key = self._calling(), request.query.get("session", "")
        if not key or key.startswith(RUN):
            return _json(await calls.propose("", None, live=False))
        summary, live = await self._summary(key), self._controlled().connection(key) is not None
        return _json(await calls.propose(summary.path.stem, summary.header, live=live))

    async def _call_state(self, request: web.Request) -> web.Response:
        return _json(self._calling().state(request.match_info["call"]))

    async def _call(self, request: web.Request) -> web.Response:
        """Open the calls of a live session or of a server, or execute another order."""
        calls, order = self._calling(), await request.json()
        if not isinstance(order, dict):
            raise web.HTTPBadRequest(text="an order is an object")
        if order.get("order") != "open":
            return _json(await calls.execute(order))
        key = str(order.get("session") or "")
        key = "" if key.startswith(RUN) else key
        if order.get("live") is True:
            connection = self._controlled().connection(key)
            if connection is None:
                raise UsageError("the session is not live, or cannot be reached", "choose a server")
            return _json(await calls.open_live(key, connection, (await self._session(key)).model))
        if not _is_local(request):
            raise web.HTTPForbidden(text="only a browser on this machine may start a server")
        stem = (await self._summary(key)).path.stem if key else ""
        opened = await calls.open_server(stem, order.get("server"))
        async with self._scanning:  # A scan that runs may miss the new session, which the page asks for next.
            self._scanned = 0.0
        return _json(opened)

    def _calling(self) -> WebCalls:
        if self._calls is None:
            raise web.HTTPForbidden(text="the page can only read: start mcpspy web with --allow-control")
        return self._calls

    def _playing(self, request: web.Request) -> Plays:
        """Return the replays and mocks. Raise HTTPForbidden if this page may not start programs."""
        if self._plays is None:
            raise web.HTTPForbidden(text="the page can only read: start mcpspy web with --allow-control")
        if not _is_local(request):
            raise web.HTTPForbidden(text="only a browser on this machine may replay or serve a session")
        return self._plays

    def _controlled(self) -> SessionControl:
        if self._control is None:
            raise web.HTTPForbidden(text="the page can only read: start mcpspy web with --allow-control")
        return self._control

    async def _rows(self, request: web.Request) -> web.Response:
        session = await self._session(request.match_info["id"])
        first, count = int(request.query.get("first", 0)), int(request.query.get("count", 100))
        await session.reach(first + count)
        view = await self._view(session, request)
        shown = session.window(view, first, count)
        cells = await session.cells(shown)
        hint = (
            "" if len(view) or view.is_behind else absent_name(view.options.query.text, session.model.names())
        )
        return _json(
            {
                "total": len(view),
                "unfiltered": view.unfiltered,
                "behind": view.is_behind,
                "hint": sanitize(hint),
                "order": str(view.options.order),
                "rows": list(map(session.row, shown)),
                "cells": cells,
                "waits": any(map(is_pending, cells)),
            }
        )

    async def _row(self, request: web.Request) -> web.Response:
        session, row = await self._reached(request)
        has_app = self._preview != OFF and self._app_of(session, row) is not None
        return _json({**(session.message(row) or {}), "preview": self._preview if has_app else ""})

    async def _views(self, request: web.Request) -> web.Response:
        session, row = await self._reached(request)
        return _json(await session.views(row))

    async def _app(self, request: web.Request) -> web.Response:
        if self._preview == OFF:
            raise web.HTTPForbidden(text="apps are not shown: start mcpspy web with --preview-apps")
        session, row = await self._reached(request)
        html = self._app_of(session, row)
        if html is None:
            raise web.HTTPNotFound(text="the message has no page of an app")
        return preview_page(html, self._preview)

    def _app_of(self, session: WebSession, row: int) -> str | None:
        """Return the page of an app in the response to a row, or in a row; None if it has none."""
        index = session.model.index
        request, answer = index.request(row), index.answer(row)
        if request is None or index.texts[index.method[request]] != "resources/read":
            return None
        return html_of(session.model.message(row if answer is None else answer))

    async def _reached(self, request: web.Request) -> tuple[WebSession, int]:
        """Return a session, and the row of the address, when it is read. Raise HTTPNotFound if there is none."""
        session = await self._session(request.match_info["id"])
        row = int(request.match_info["number"]) - 1
        await session.reach(row)
        if not 0 <= row < len(session.model):
            raise web.HTTPNotFound(text="the session has no such row")
        return session, row

    async def _place(self, request: web.Request) -> web.Response:
        session = await self._session(request.match_info["id"])
        row = int(request.query.get("number", 0)) - 1
        await session.reach(row if row >= 0 else sys.maxsize)
        view = await self._view(session, request)
        if row >= 0:
            row = session.listed_row(row)
            place = view.place_of(row) if view.contains(row) else None
        else:
            step = -1 if request.query.get("step") == "-1" else 1
            place = await session.seek(view, int(request.query.get("from", -1)), step)
        number = None if place is None else view.rows[place] + 1
        return _json({"place": place, "number": number})

    async def _timeline(self, request: web.Request) -> web.Response:
        session = await self._session(request.match_info["id"])
        await session.reach(sys.maxsize)
        view = await self._view(session, request)
        return _json(await session.timeline(view, request.query))

    async def _report(self, request: web.Request) -> web.Response:
        key, name, other = request.match_info["id"], request.match_info["report"], request.query.get("with")
        is_run = key.startswith(RUN)
        make = reports.REPORTS.get(name)
        if make is None or (is_run and name not in reports.RUN_REPORTS):
            raise web.HTTPNotFound(text="no such report")
        if is_run:
            summaries = named_run(key, await self._found_runs()).sessions
        else:
            summaries = [await self._summary(each) for each in (key, other) if each is not None]
        return _json(await asyncio.to_thread(make, summaries, dict(request.query)))

    async def _view(self, session: WebSession, request: web.Request) -> Any:
        query = parse(request.query.get("q", ""))
        return await session.view(
            query, request.query.get("order", "time"), http=request.query.get("http") == "1"
        )

    async def _session(self, key: str) -> WebSession:
        """Return an open session, and close those that no page has shown lately."""
        if key.startswith(RUN):
            await self._open_run(key)
        elif key not in self._open:
            summary = await self._summary(key)
            if key not in self._open:  # Another request may have opened it meanwhile.
                self._open[key] = WebSession([summary], self._extension)
        session = self._open.pop(key)
        self._open[key] = session
        for old, unused in list(self._open.items())[:-OPEN]:
            if not unused.readers:
                del self._open[old]
                await unused.close()
        return session

    async def _open_run(self, key: str) -> None:
        """Open a run, also again if sessions were added to it."""
        found = named_run(key, await self._found_runs())
        old = self._open.get(key)
        if old is not None and old.paths == [summary.path for summary in found.sessions]:
            return
        listed = described(found, self._count, self._key)
        self._open[key] = WebSession(found.sessions, self._extension, runs.facts(found, listed))
        if old is not None:
            await old.close()

    async def _summary(self, key: str) -> Summary:
        """Return a session of the folder by the key that its page has; no path is read from a request."""
        if key not in self._by_key or time.monotonic() > self._scanned + SCANNED:
            await self._scan()
        if key not in self._by_key:
            raise web.HTTPNotFound(text="no such session in the folder")
        return self._by_key[key]

    async def _scan(self) -> None:
        async with self._scanning:
            if time.monotonic() < self._scanned + SCANNED:
                return
            self._sessions = await asyncio.to_thread(self._catalog.look)
            await asyncio.to_thread(self._counts.work, self._sessions[:LISTED])
            by_key = {summary.path.stem: summary for summary in self._sessions}
            for summary in self._sessions:
                if summary.header.id.isalnum():
                    by_key.setdefault(summary.header.id, summary)
            self._by_key = by_key
            self._scanned = time.monotonic()

    async def _list_version(self) -> Any:
        await self._scan()
        return len(self._sessions), list(self._sessions[:LISTED]), self._counts.news

    def _listed(self, listed: ListedSession) -> dict[str, Any]:
        summary, counts = listed.summary, self._counts.of(listed.summary)
        header = summary.header
        return {
            "key": self._key(summary),
            "name": sanitize(header.name) or "session",
            "state": listed.state,
            "origin": "" if header.origin == HOST else sanitize(header.origin),
            "verdict": "…" if listed.verdict is None and not is_too_large(summary) else listed.words,
            "brief": short_words(summary, counts),
            "tone": reports.state_tone(listed),
            "started": sanitize(header.started),
            "lasted": summary.last,
            "server": sanitize(str(summary.server or "")),
            "client": sanitize(str(summary.client or "")),
            "revision": sanitize(summary.revision or ""),
            "transport": sanitize(header.transport),
            "size": summary.size,
            "counts": None if counts is None else counts._asdict(),
            "uncounted": counts is None and is_too_large(summary),
        }

    def _key(self, summary: Summary) -> str:
        """Return the key of a session in addresses: its id if that is unique, else the name of its file."""
        found = self._by_key.get(summary.header.id)
        return summary.header.id if found is not None and found.path == summary.path else summary.path.stem


def _is_local(request: web.Request) -> bool:
    """Return whether both ends of a connection are on loopback."""
    ends = (request.get_extra_info(name) for name in ("sockname", "peername"))
    return all(end is not None and ip_address(end[0]).is_loopback for end in ends)


@contextmanager
def _reading(session: WebSession | None) -> Iterator[None]:
    """Count an event stream among the readers of a session."""
    if session is None:
        yield
        return
    session.readers += 1
    try:
        yield
    finally:
        session.readers -= 1


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(text=dumps(value), status=status, content_type="application/json")
