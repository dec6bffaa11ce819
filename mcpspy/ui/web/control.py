"""Control of live sessions from the page: held messages, requests that are sent, restarts of servers.

Only with `mcpspy web --allow-control`. A session is reached while a page listens to its events; when the last page
leaves, mcpspy releases what it held.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.ui.model.intercept_connection import HeldMessage, InterceptConnection
from mcpspy.ui.web.session import WebSession


class _Control:
    """The connection to one session, and the pages that use it."""

    def __init__(self, session: WebSession) -> None:
        self.connection = InterceptConnection(session.path, lambda _held, _why: None, "web")
        self.pages = 0
        self.task = asyncio.create_task(self.connection.keep(lambda: session.is_live))


class SessionControl:
    """The control of the sessions that pages show."""

    def __init__(self) -> None:
        self._open: dict[str, _Control] = {}

    @asynccontextmanager
    async def attached(self, key: str, session: WebSession) -> AsyncIterator[None]:
        """Reach a session while a page listens to it."""
        control = self._open.get(key)
        if control is None:
            control = self._open[key] = _Control(session)
        control.pages += 1
        try:
            yield
        finally:
            control.pages -= 1
            if not control.pages:
                del self._open[key]
                control.task.cancel()
                await asyncio.gather(control.task, return_exceptions=True)

    def connection(self, key: str) -> InterceptConnection | None:
        """Return the connection to a session that a page shows, if it is reached."""
        control = self._open.get(key)
        return control.connection if control is not None and control.connection.is_open else None

    def state(self, key: str) -> dict[str, Any]:
        """Return what the page shows of a session's control."""
        control = self._open.get(key)
        if control is None or not control.connection.is_open:
            return {"open": False, "query": None, "restarts": False, "held": []}
        connection = control.connection
        return {
            "open": True,
            "query": connection.query,
            "restarts": connection.may_restart,
            "held": [_described(held) for held in connection.held.values()],
        }

    def held(self, key: str, ticket: int) -> HeldMessage:
        """Return a held message; raise UsageError if it is not held any more."""
        control = self._open.get(key)
        found = None if control is None else control.connection.held.get(ticket)
        if found is None:
            raise UsageError("the message is not held any more")
        return found

    async def execute(self, key: str, order: dict[str, Any]) -> dict[str, Any]:
        """Execute an order of the page; return its outcome. Raise McpspyError if the session refuses it."""
        control = self._open.get(key)
        if control is None:
            raise UsageError("the session is not shown, or has ended")
        connection, what = control.connection, order.get("order")
        if what == "hold":
            query = order.get("query")
            await connection.hold(None if query is None else str(query))
        elif what == "release all":
            return {"released": await connection.accept_all()}
        elif what == "restart":
            await connection.restart()
        elif what == "request":
            stream = order.get("stream")
            text = str(order.get("text", ""))
            return {"id": await connection.request("server", text, None if stream is None else str(stream))}
        elif what in ("release", "edit", "drop", "answer"):
            held = self.held(key, int(order.get("ticket", 0)))
            if what == "release":
                await connection.accept(held)
            elif what == "edit":
                await connection.edit(held, str(order.get("text", "")))
            elif what == "drop":
                await connection.drop(held)
            else:
                await connection.answer(held, -32000, str(order.get("text", "")) or "refused by a viewer")
        else:
            raise UsageError(f"unknown order {sanitize(str(what))!r}")
        return {}


def _described(held: HeldMessage) -> dict[str, Any]:
    return {
        "ticket": held.ticket,
        "side": held.side,
        "name": sanitize(held.name),
        "by": sanitize(held.rule or held.viewer),
        "request": held.is_request,
        "left": round(max(held.until - time.monotonic(), 0.0)),
    }
