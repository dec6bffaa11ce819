"""The client of the demo: a fixed conversation with whatever server it starts.

Owns the script. Speaks over real pipes to a real process, `mcpspy run` around
the server included, so that what the demo shows is what anybody's session is.

The demo, recorded behind a screen that has the terminal.

Owns starting `mcpspy demo --plain` so that neither of the two sees the
terminal, and that it is not left behind. What the demo does is its own.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

from mcpspy import __version__
from mcpspy.core.sanitize import sanitize_bytes
from mcpspy.errors import CannotStart

CLIENT_TIMEOUT = 20.0
"""Seconds for the whole conversation: nothing in it takes one."""


def converse(command: list[str]) -> int:
    """Start the server, hold the conversation, close stdin; return the server's exit code."""
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    alarm = threading.Timer(CLIENT_TIMEOUT, server.kill)
    alarm.start()
    try:
        with server:
            talk = _Conversation(server)
            talk.ask(
                "initialize",
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "mcpspy-demo", "version": __version__},
                },
            )
            talk.tell("notifications/initialized")
            talk.ask("tools/list")
            talk.ask("tools/call", {"name": "stations", "arguments": {}})
            forecast = {"name": "forecast", "arguments": {"city": "Reykjavík", "days": 2}}
            talk.ask("tools/call", {**forecast, "_meta": {"progressToken": "forecast-1"}})
            talk.ask("tools/call", {"name": "forecast", "arguments": {"city": "Atlantis"}})
            talk.ask("tools/call", {"name": "tides", "arguments": {}})
            talk.ask("ping")
            talk.end()
    finally:
        alarm.cancel()
    return server.returncode


class _Conversation:
    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._stdin = server.stdin
        self._stdout = server.stdout
        self._last_id = 0

    def ask(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a request and wait for its answer; what comes before it is not ours to judge."""
        self._last_id += 1
        self._send(
            {
                "jsonrpc": "2.0",
                "id": self._last_id,
                "method": method,
                **({"params": params} if params else {}),
            }
        )
        for line in self._stdout:
            try:
                message = json.loads(line)
            except ValueError:  # The stray print, which a client has to survive.
                continue
            if message.get("id") == self._last_id:
                return
        raise CannotStart("the demo's server stopped before it had answered", "mcpspy show last says why")

    def tell(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def end(self) -> None:
        """Close stdin, and hear the server out: who closes stdout first cuts it short."""
        self._stdin.close()
        self._stdout.read()

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._stdin.flush()


RECORD_TIMEOUT = 60.0
"""Seconds for all of it; its own bound is shorter."""


async def record(folder: str) -> str:
    """Record the demo into a folder; return what went wrong, in one inert line, or nothing."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpspy", "demo", "--plain", "--dir", folder),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(RECORD_TIMEOUT):
            _, said = await process.communicate()
    except TimeoutError:
        return f"it took more than {RECORD_TIMEOUT:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = said.split(b"\n")
    told = next((line for line in reversed(lines) if line.strip()), b"")
    return "" if process.returncode == 0 else sanitize_bytes(told) or f"exit {process.returncode}"
