"""A live session in memory for tests: interceptor, recording and control socket, without real peers."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.intercept.actions import AddNote, Forward, Inject, Notify, Step, Substitute
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.trust_guard import TrustGuard
from mcpspy.core.recording.encode import MCPSPY, frame_prefix
from mcpspy.core.rules.model import Rules
from mcpspy.core.rules.parser import read_flag
from mcpspy.io.control.server_asyncio import AsyncioServer
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.tui.session import labels

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "Cline", "version": "3.78.0"},
}


def call(number: int, tool: str = "write_file", **arguments: object) -> bytes:
    """Return a tool call."""
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def result(number: object, text: str = "done") -> bytes:
    """Return a response to a tool call."""
    value = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}, separators=(",", ":")).encode()


class Reached:
    """The session as seen by its two peers."""

    def __init__(
        self, folder: Path, *flags: str, hold_timeout: float = 300.0, trust: TrustGuard | None = None
    ) -> None:
        fields: dict[str, Any] = {"transport": "stdio", "command": ["files"], "name": "files"}
        self._writer = Writer(str(folder), None, fields, say=pytest.fail)
        self.path = Path(self._writer.path)
        self.session = self._writer.id
        rules = Rules(tuple(read_flag(flag, number) for number, flag in enumerate(flags, 1)), 1)
        self.interceptor = Interceptor(rules, prefix="mcpspy-test-", hold_timeout=hold_timeout, trust=trust)
        self._began = time.monotonic()
        self._is_over = False
        self.sent: list[tuple[str, bytes]] = []
        """Forwarded messages, each with the side that sent it."""
        self.tell: Any = None
        self.restarts: list[str] | None = None
        """Viewers that have ordered a restart; None if the server cannot be restarted."""

    @property
    def at(self) -> float:
        return time.monotonic() - self._began

    def say(self, side: str, data: bytes) -> None:
        """Send a message from one side."""
        at = self.at
        decision = self.interceptor.process(at, side, data)
        self._record(at, side, data, {"to": MCPSPY} if decision.to_mcpspy else {})
        self._perform(decision.steps)

    def begin(self) -> None:
        """Do the handshake."""
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        self.say("client", json.dumps(hello).encode())
        info = {"name": "files", "version": "1"}
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        self.say("server", json.dumps({"jsonrpc": "2.0", "id": 0, "result": answer}).encode())
        self.say("client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def wake(self, later: float = 0.0) -> None:
        """Run the due timers of the interceptor."""
        self._perform(self.interceptor.run_due(self.at + later))

    def taken(self) -> list[tuple[str, bytes]]:
        """Return the messages forwarded since the last call."""
        sent, self.sent = self.sent, []
        return sent

    # The interface for the control server.

    def listening(self, path: str | None) -> None: ...

    def closing(self) -> None: ...

    def closed(self) -> None: ...

    def hello(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "file": str(self.path),
            "name": "files",
            "transport": "stdio",
            "pid": 1,
            **({} if self.restarts is None else {"restarts": True}),
            "state": self.interceptor.describe(self.at),
        }

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        if self.restarts is not None and order["order"] == "restart":
            self.restarts.append(viewer)
            return {}
        reply = self.interceptor.execute(self.at, viewer, order)
        self._perform(reply.steps)
        return reply.answer

    def viewer_left(self, viewer: str) -> None:
        self._perform(self.interceptor.viewer_left(self.at, viewer))

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._perform(self.interceptor.end(self.at))
            self._writer.note(self.at, "exit", code=0, signal=None)
            self._writer.close()

    def _perform(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Forward | Substitute):
                self.sent.append((step.side, step.data))
            elif isinstance(step, Inject):
                self._record(self.at, step.side, step.data, {"by": MCPSPY})
                self.sent.append((step.side, step.data))
            elif isinstance(step, AddNote):
                self._writer.note(self.at, step.kind, **step.fields)
            elif isinstance(step, Notify):
                self.tell(step.viewer, step.event)

    def _record(self, at: float, side: str, data: bytes, fields: dict[str, str]) -> None:
        self._writer.write(frame_prefix(side, fields) % at + b'"msg":' + data + b"}\n")


async def hold(screen: Any, query: str) -> None:
    """Set a filter, and intercept the messages that match it."""
    await screen.shows("● LIVE")
    screen.session.filter.put(query)
    await screen.press("i")
    await screen.shows(f"intercepting {query} · 0 held")


@pytest.fixture
def reached(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a context manager that runs a live session; its handshake is done."""
    # Messages stay until the next one: on a busy machine they would expire before a test sees them.
    monkeypatch.setattr(labels, "FLASH", 60.0)

    @asynccontextmanager
    async def open_(*flags: str, **options: Any) -> AsyncIterator[Reached]:
        restarts = options.pop("restarts", None)
        session = Reached(tmp_path, *flags, **options)
        session.restarts = restarts
        control = AsyncioServer.open(session, pytest.fail)
        assert control is not None
        session.begin()
        session.taken()
        try:
            yield session
        finally:
            session.end()
            await control.close()

    return open_
