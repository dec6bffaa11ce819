"""Fuzz target of scripts: their process and the session exchange messages as over the control socket, without one.

The scripts are those that mcpspy contains, and one that reads everything of each message (fuzz/probe.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.virtual_time import temporary_folder, virtual_loop
from mcpspy.core.intercept.actions import AddNote, Notify, Step
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.scripts import ScriptQueue
from mcpspy.core.rules.model import Rules
from mcpspy.io.control.server import ControlServer
from mcpspy.io.scripts import BUILTIN, script_path
from mcpspy.ui.scripts.host import ScriptHost
from mcpspy.ui.scripts.script import Script

TOKEN = "token"  # noqa: S105 - no secret.

SCRIPTS = ("meter", "repair", "cache", "latency", "tools", "ratelimit", "policy")
"""Those that decide only by the messages, without a server, chance or a file."""

POLICY = {"deny": ["denied*"], "arguments": {"echo": {"type": "object", "required": ["message"]}}}

MOST_MESSAGES = 20

NOT_UTF8 = "UsageError: replace: neither one line nor JSON in UTF-8"
"""A member of such a message cannot be replaced (docs/api.md)."""


def scripts(data: bytes) -> None:
    """No message makes a script or its process fail, and each message is decided on."""
    errors: list[object] = []
    loop = virtual_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    loop.run_until_complete(_play(data.split(b"\n")[:MOST_MESSAGES]))
    assert not errors, errors


async def _play(messages: list[bytes]) -> None:
    session = Session()
    host = ScriptHost(
        {
            "socket": "",
            "token": TOKEN,
            "timeout": 5.0,
            "timeouts": {},
            "options": {
                "prefix": "p.",
                "rename": "echo:say",
                "hide": "h*",
                "tools": "echo",
                "rate": "5",
                "file": _policy(),
            },
        }
    )
    loop = asyncio.get_running_loop()

    def receive(data: bytes) -> None:
        buffer = host.get_buffer(0)
        for at in range(0, len(data), len(buffer)):
            part = data[at : at + len(buffer)]
            buffer[: len(part)] = part
            host.buffer_updated(len(part))

    connection = ControlServer(session).accept(lambda data: _later(receive, data), lambda: None)
    host.connection_made(Pipe(lambda data: _later(connection.feed, data)))
    host._session = await host._greeting
    host._reply({"order": "hello", "viewer": "scripts"})
    host._tell_state()
    for script in _scripts():
        host._scripts.append(script)
        await host._configure(script)
    host._ready()
    await asyncio.sleep(0.001)
    for number, message in enumerate(messages):
        session.receive(number / 10, "server" if message[:1] == b"<" else "client", message[1:])
        await asyncio.sleep(0.001)
    await asyncio.sleep(20.0)
    session.run_due(1e6)
    state = session.engine.describe(1e6)
    assert (state["held"], state["delayed"]) == ([], 0), state
    host.connection_lost(None)
    await asyncio.sleep(0.001)
    assert loop.time() > 0


def _later(function: Callable[[bytes], None], data: bytes) -> None:
    asyncio.get_running_loop().call_soon(function, data)


class Pipe(asyncio.Transport):
    """The process's end of the control socket."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._write(bytes(data))


class Session:
    """A session that the process of scripts controls."""

    session = "1"
    tell: Callable[[str | None, dict[str, Any]], None]

    def __init__(self) -> None:
        names = ["probe", *SCRIPTS]
        self.engine = Interceptor(Rules((), 0), prefix="mcpspy-", scripts=ScriptQueue(names, TOKEN))
        assert self.engine.scripts is not None
        self.engine.scripts.started(0.0)

    def receive(self, at: float, side: str, message: bytes) -> None:
        self._carry_out(self.engine.process(at, side, message).steps)

    def run_due(self, at: float) -> None:
        self._carry_out(self.engine.run_due(at))

    def hello(self) -> dict[str, Any]:
        return {"session": "1", "file": None, "name": "s", "transport": "stdio", "pid": 1, "state": {}}

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        reply = self.engine.execute(1.0, viewer, order)
        self._carry_out(reply.steps)
        return reply.answer

    def viewer_left(self, viewer: str) -> None: ...

    def listening(self, path: str | None) -> None: ...

    def closing(self) -> None: ...

    def closed(self) -> None: ...

    def _carry_out(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Notify):
                self.tell(step.viewer, step.event)
            elif isinstance(step, AddNote):
                failed = step.fields.get("failed", "")
                assert not failed or NOT_UTF8 in failed, step.fields


@cache
def _scripts() -> list[Script]:
    probe = Script("probe", str(Path(__file__).with_name("probe.py")))
    return [probe, *(Script(name, script_path(BUILTIN + name)) for name in SCRIPTS)]


@cache
def _policy() -> str:
    path = temporary_folder() / "policy.json"
    path.write_text(json.dumps(POLICY), encoding="utf-8")
    return str(path)
