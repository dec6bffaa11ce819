"""A session that only lists: mcpspy connects to a server, and reads what it offers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcpspy import __version__
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS, declared
from mcpspy.core.protocol.listing import LISTINGS, MAX_PAGES, next_cursor
from mcpspy.core.protocol.message import Failure, Result, loads, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
    ServerTarget,
    connect,
)
from mcpspy.io.client.base import INITIALIZED
from mcpspy.io.client.http_exchange import excerpt
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import RecordingObserver
from mcpspy.io.session_name import session_name

REVISION = "2025-11-25"


async def listed(target: ServerTarget, seconds: float) -> Session:
    """Return the session of a client that initializes and lists everything. Raise CannotStart.

    `seconds` is the time limit of the whole session. Nothing is recorded, and nothing is redacted.
    """
    where = RecordingTarget()
    where.recording, where.redaction.off = False, True
    fields: dict[str, Any] = (
        {"command": target.arguments, "name": session_name(target.arguments)}
        if isinstance(target, ServerCommand)
        else {"transport": "http", "upstream": target.url}
    )
    observer = RecordingObserver(where, fields)
    connection = await connect(target, observer)
    try:
        async with asyncio.timeout(seconds):
            await _Lister(connection).list_all()
    except TimeoutError:
        raise CannotStart(f"{connection.name}: no complete listing within {seconds:g} s") from None
    finally:
        await connection.close()
    observer.session.end()
    return observer.session


class _Lister:
    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._number = 0
        self._error = ""
        """Text of the last error that the server returned."""

    async def list_all(self) -> None:
        client = {"name": "mcpspy", "version": __version__}
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        result = await self._ask("initialize", params)
        if result is None:
            raise CannotStart(
                f"{self._connection.name}: initialize failed: {self._error or 'its result is not an object'}",
                "record a session with a client of its revision, and use mcpspy trust SESSION",
            )
        await self._connection.send(INITIALIZED)
        capabilities = result.get("capabilities") or {}
        for method in LISTINGS:
            extension = EXTENSION_LISTINGS.get(method)
            is_offered = (
                method.partition("/")[0] in capabilities
                if extension is None
                else extension[0].id in declared(capabilities)
            )
            if is_offered:
                await self._list(method)

    async def _list(self, method: str) -> None:
        cursor = None
        for _ in range(MAX_PAGES):
            result = await self._ask(method, {} if cursor is None else {"cursor": cursor})
            cursor = next_cursor(result or {})
            if cursor is None:
                return

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result; None for an error. Raise CannotStart if the server ends."""
        self._number += 1
        number = str(self._number)
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self._connection.send(json.dumps(request).encode())
        async for event in self._connection:
            if isinstance(event, ConnectionEnded):
                break
            if isinstance(event, ExchangeRefused | ExchangeLost) and event.request == number:
                raise CannotStart(f"{self._connection.name}: {method}: {event.why}")
            if not isinstance(event, ReceivedMessage):
                continue
            for message in read_frame(Frame(0.0, "server", event.data)):
                if isinstance(message, Result | Failure) and message.id == number:
                    if isinstance(message, Failure):
                        self._error = message.text
                        return None
                    found = loads(message.raw_result)
                    return found if isinstance(found, dict) else None
            if event.request == number and event.status >= 400:  # It answers the request, whatever its id.
                raise CannotStart(
                    f"{self._connection.name}: {method}: HTTP {event.status}: {excerpt(event.data)}",
                    "check the path of the URL; it is often /mcp" if event.status == 404 else "",
                )
        words = "; ".join(self._connection.last_words)
        raise CannotStart(f"{self._connection.name}: the server ended before it answered {method}", words)
