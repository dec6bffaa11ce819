"""The connection from a screen or a page to its live session, and the messages held there.

Reconnects until the session ends. Commands raise McpspyError with the reason.
See docs/control.md for the events.
"""

from __future__ import annotations

import asyncio
import time
from binascii import Error, a2b_base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis.rows import progress_of
from mcpspy.errors import CannotStart, McpspyError


class HeldMessage(NamedTuple):
    ticket: int
    side: str
    at: float
    """Seconds since the start of the session."""
    method: str
    """The method of the request if the message is a response; empty if unknown."""
    subject: str
    id: str | None
    is_request: bool
    data: bytes
    """The bytes that are forwarded if the user accepts the message."""
    viewer: str
    """The viewer whose filter holds the message; empty if a rule holds it."""
    rule: str
    since: float
    """Local monotonic time, like `until`."""
    until: float
    """The time of the automatic release."""

    @property
    def name(self) -> str:
        what = f"{self.method} {self.subject}".strip() or "message"
        return what if self.is_request or self.id is None else f"response to {what}"


def read_held(fields: dict[str, Any], now: float) -> HeldMessage | None:
    """Return a held message from a control event; None if the event is malformed."""
    try:
        data = a2b_base64(fields["b64"]) if "b64" in fields else fields["text"].encode()
        at, age = float(fields["at"]), float(fields.get("age", 0.0))
        since = now - age
        return HeldMessage(
            ticket=int(fields["ticket"]),
            side=str(fields["from"]),
            at=at,
            method=str(fields.get("method", "")),
            subject=str(fields.get("subject", "")),
            id=fields.get("id"),
            is_request="id" in fields and _has_method(data),
            data=data,
            viewer=str(fields.get("viewer", "")),
            rule=str(fields.get("rule", "")),
            since=since,
            until=since + float(fields["deadline"]) - at,
        )
    except (KeyError, TypeError, ValueError, AttributeError, Error):
        return None


def _has_method(data: bytes) -> bool:
    from mcpspy.core.protocol.message import loads

    message = loads(data)
    return isinstance(message, dict) and "method" in message


RETRY = 0.5
"""Seconds between two attempts to connect: the session may have just begun."""


class InterceptConnection:
    def __init__(self, path: Path, released: Callable[[HeldMessage, str], None], name: str = "tui") -> None:
        """`released` is called for messages that are released without a command of this connection.

        `name` is that of the viewer in the recording; mcpspy appends a number if it is in use.
        """
        self._path = path
        self._name = name
        self._released = released
        self._client: Any = None
        self._why = ""
        self._has_tried = asyncio.Event()
        self._decided: set[int] = set()
        self.viewer = ""
        self.may_restart = False
        """True if the session can start its server again (`run --watch`)."""
        self.held: dict[int, HeldMessage] = {}
        """Ticket → message, in order of arrival."""
        self.query: str | None = None
        """The filter of the messages that this viewer holds; None if it holds none."""
        self.answers: dict[str, dict[str, Any]] = {}
        """Id of an injected request (JSON text) → event with its `message`, or with the reason as `error`."""
        self.progress: dict[str, str] = {}
        """Id of an injected request (JSON text) → its last progress, in words."""

    @property
    def is_open(self) -> bool:
        return self._client is not None

    async def reached(self) -> bool:
        """Return whether the session is reached, once that was tried."""
        await self._has_tried.wait()
        return self.is_open

    @property
    def held_here(self) -> list[HeldMessage]:
        """The messages that are released when this viewer leaves."""
        return [held for held in self.held.values() if self.viewer and held.viewer == self.viewer]

    async def keep(self, is_live: Callable[[], bool]) -> None:
        try:
            while is_live():
                try:
                    await self._connect()
                    self._has_tried.set()
                    await self._listen()
                except (OSError, McpspyError) as error:
                    self._why = str(error).removeprefix(f"{self._path}: ")
                await self.leave()
                self._has_tried.set()
                await asyncio.sleep(RETRY)
        finally:
            await self.leave()

    async def leave(self) -> None:
        """Close the connection; the session then releases the messages that this viewer holds."""
        client, self._client = self._client, None
        self.query, self.viewer, self.may_restart = None, "", False
        self.held.clear()
        if client is not None:
            self._why = "the session has ended"
            await client.close()

    async def hold(self, query: str | None) -> None:
        """Hold messages that match a filter; None releases the messages that this viewer holds."""
        self._decided |= {held.ticket for held in self.held_here} if query is None else set()
        await self._command("hold", query=query)
        self.query = query

    async def accept(self, held: HeldMessage) -> None:
        await self._decide("release", held)

    async def accept_all(self) -> int:
        """Release all messages in order; return their number."""
        self._decided |= set(self.held)
        return int((await self._command("release", tickets="all"))["released"])

    async def edit(self, held: HeldMessage, text: str) -> None:
        await self._decide("release", held, text=text)

    async def drop(self, held: HeldMessage) -> None:
        await self._decide("drop", held)

    async def answer(self, held: HeldMessage, code: int, message: str) -> None:
        await self._decide("answer", held, error={"code": code, "message": message})

    async def request(self, to: str, text: str, stream: str | None) -> str:
        """Inject a request, given as JSON text; return its id as JSON text."""
        return str((await self._command("request", to=to, text=text, stream=stream))["id"])

    async def call(self, method: str, params: Mapping[str, Any], stream: str | None) -> str:
        """Inject a request to the server, with the `_meta` of the client and a progress token; return its id as JSON text."""
        fields = {**params, "_meta": {"progressToken": 0}}  # The session replaces it.
        answer = await self._command("request", to="server", method=method, params=fields, stream=stream)
        return str(answer["id"])

    def error(self, id_text: str) -> str | None:
        """Return the reason why an injected request gets no response; None if there is none."""
        answer = self.answers.get(id_text)
        return None if answer is None or "error" not in answer else str(answer["error"])

    async def notify(self, to: str, text: str, stream: str | None) -> None:
        await self._command("notify", to=to, text=text, stream=stream)

    async def notify_server(self, method: str, params: Mapping[str, Any], stream: str | None) -> None:
        await self._command("notify", to="server", method=method, params=params, stream=stream)

    async def restart(self) -> None:
        """Restart the server. The outcome is a note of the recording."""
        await self._command("restart")

    async def _decide(self, order: str, held: HeldMessage, **fields: Any) -> None:
        self._decided.add(held.ticket)
        try:
            await self._command(order, ticket=held.ticket, **fields)
        except McpspyError:
            self._decided.discard(held.ticket)
            raise

    async def _command(self, order: str, **fields: Any) -> dict[str, Any]:
        if self._client is None:
            await self._has_tried.wait()
        if self._client is None:
            raise CannotStart(f"cannot reach the session: {self._why}")
        answer: dict[str, Any] = await self._client.order(order, **fields)
        return answer

    async def _connect(self) -> None:
        from mcpspy.io.control.client import AsyncControlClient, find_session

        client = await AsyncControlClient.open(await asyncio.to_thread(find_session, self._path))
        try:
            self.viewer = str((await client.order("hello", viewer=self._name))["viewer"])
        except BaseException:
            await client.close()
            raise
        for fields in client.hello.get("state", {}).get("held", ()):
            self._hold(fields)
        self.may_restart = client.hello.get("restarts") is True
        self._client = client

    async def _listen(self) -> None:
        async for event in self._client.events():
            if event["event"] == "held":
                self._hold(event)
            elif event["event"] == "released":
                self._released_event(event)
            elif event["event"] == "answer":
                self.answers[str(event["id"])] = event
            elif event["event"] == "progress":
                params = event["message"].get("params") or {}
                words = progress_of(params.get("progress"), params.get("total"), params.get("message"))
                self.progress[str(event["id"])] = words

    def _hold(self, fields: dict[str, Any]) -> None:
        held = read_held(fields, time.monotonic())
        if held is not None:
            self.held[held.ticket] = held

    def _released_event(self, event: dict[str, Any]) -> None:
        ticket = event.get("ticket")
        held = self.held.pop(ticket, None) if isinstance(ticket, int) else None
        if held is not None and held.ticket not in self._decided:
            self._released(held, str(event.get("why", "")))
        if held is not None:
            self._decided.discard(held.ticket)
