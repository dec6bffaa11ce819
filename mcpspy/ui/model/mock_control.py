"""A mock that was started here: its process, and the connection that steers it.

`RunningMock` starts and ends the process; `MockConnection` is a viewer of the session that it records, with the order
`mock` (docs/control.md).
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session.mock_notes import MOCK
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.engine import EngineProcess
from mcpspy.io.hosts.configuration import command_line
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.model.intercept_connection import HeldMessage, InterceptConnection
from mcpspy.ui.model.mock_engine import MockSetup, real_server
from mcpspy.ui.model.remembered import has_secret, keep_form, read_form

ENGINE = "mcpspy.ui.model.mock_engine"

HIGHEST = 65535
"""The highest port number."""

REQUESTS = "kind:request from:client"
"""The filter of what waits while a mock is paused."""


class MockForm(Struct, frozen=True):
    """The texts of the dialog before a mock, remembered per server."""

    port: str = "0"
    server: str | None = None
    """The real server; None for the recorded one."""

    def setup(self, summary: Summary, folder: str) -> MockSetup:
        """Return what serves a session, and records its clients to `folder`. Raise UsageError."""
        port, server = self.port.strip(), (self.server or "").strip()
        if not (port.isascii() and port.isdigit() and int(port) <= HIGHEST):
            raise UsageError(f"port {port}: not a number from 0 to {HIGHEST}")
        if MARK.decode() in server:
            raise UsageError("real server: fill in the redacted values", "or leave the field empty")
        setup = MockSetup(
            recording=str(summary.path.absolute()),
            folder=folder,
            port=int(port),
            server=server,
            cwd=summary.header.cwd or "",
        )
        real_server(setup)
        return setup


def remembered_mock(header: Header) -> MockForm:
    """Return the last form of this server, or the proposed one, with the recorded server."""
    form = read_form(MOCK, header, MockForm) or MockForm()
    recorded = shlex.join(header.command) if header.command else header.upstream or ""
    return form if form.server is not None else replace(form, server=recorded)


def remember_mock(header: Header, form: MockForm) -> None:
    """Keep the form of a server. Raises OSError."""
    keep_form(MOCK, header, replace(form, server=None) if has_secret(form.server or "") else form)


class RunningMock:
    """The process of a mock."""

    def __init__(self, setup: MockSetup) -> None:
        self.setup = setup
        self.url = ""
        self.path = Path()
        """The session that it records."""
        self.trouble = ""
        """The reason why it ended, or why it serves no longer; empty while it serves."""
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._engine = EngineProcess(ENGINE, self._received, self._ended)

    async def start(self) -> None:
        """Start it, and wait until it serves. Raise CannotStart with the reason if it does not."""
        await self._engine.start(to_builtins(self.setup))
        try:
            await self._began
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End it; return when its process has ended."""
        await self._engine.stop()

    @property
    def command(self) -> list[str]:
        """The command with which a host that starts its servers reaches it."""
        return [*command_line(), "bridge", "--no-record", "--upstream", self.url]

    @property
    def name(self) -> str:
        """The name of its entry in a configuration."""
        return f"mock-{Path(self.setup.recording).stem}"

    def snippet(self) -> str:
        """Return the entry for the configuration of a host, as JSON."""
        program, *arguments = self.command
        return json.dumps(
            {"mcpServers": {self.name: {"command": program, "args": arguments}}}, indent=2, ensure_ascii=False
        )

    def shown_command(self) -> str:
        return shlex.join(self.command)

    def _received(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "serving":
            self.url, self.path = str(event["url"]), Path(event["path"])
            if not self._began.done():
                self._began.set_result(None)
        elif event.get("event") == "failed":
            self._fail(str(event.get("text")))

    def _ended(self, why: str) -> None:
        self._fail(why or "the mock has ended")

    def _fail(self, why: str) -> None:
        self.trouble = self.trouble or why
        if not self._began.done():
            self._began.set_exception(CannotStart(why))


class MockConnection(InterceptConnection):
    """The connection to the session that a mock records."""

    def __init__(self, path: Path, released: Callable[[HeldMessage, str], None]) -> None:
        super().__init__(path, released)
        self.state: Mapping[str, Any] = {}
        """The answer to the last order `mock`; empty before the first one."""

    @property
    def is_paused(self) -> bool:
        return self.query is not None

    @property
    def requests(self) -> list[HeldMessage]:
        """The requests that wait."""
        return [held for held in self.held.values() if held.is_request]

    async def steer(self, **fields: Any) -> Mapping[str, Any]:
        """Change the mock, and return its state. Raise McpspyError with the reason if it refuses."""
        self.state = await self._command(MOCK, **fields)
        return self.state

    async def pause(self, *, on: bool) -> None:
        """Let all requests of clients wait, or release those that wait and stop that."""
        await self.hold(REQUESTS if on else None)

    async def give(self, held: HeldMessage, member: str, value: Any) -> None:
        """Answer a request that waits with a `result` or an `error`."""
        await self._decide("answer", held, **{member: value})
