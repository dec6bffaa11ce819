"""The demo client: a fixed sequence of requests to a server that it starts.

Uses real pipes to a real process, with the server wrapped by `mcpspy run`, so the demo is an ordinary session.
`record` runs the demo in the background, without a terminal, for the TUI.
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
"""Seconds for all requests, which take less than one."""

RECORD_TIMEOUT = 60.0
"""Seconds for the whole demo, including the start of mcpspy."""


def converse(command: list[str]) -> int:
    """Start the server, send the requests, close stdin; return the server's exit code."""
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    alarm = threading.Timer(CLIENT_TIMEOUT, server.kill)
    alarm.start()
    try:
        with server:
            conversation = _Conversation(server)
            client = {"name": "mcpspy-demo", "version": __version__}
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            conversation.request("initialize", hello)
            conversation.notify("notifications/initialized")
            conversation.request("tools/list")
            conversation.request("tools/call", {"name": "stations", "arguments": {}})
            forecast = {"name": "forecast", "arguments": {"city": "Reykjavík", "days": 2}}
            conversation.request("tools/call", {**forecast, "_meta": {"progressToken": "forecast-1"}})
            conversation.request("tools/call", {"name": "forecast", "arguments": {"city": "Atlantis"}})
            conversation.request("tools/call", {"name": "tides", "arguments": {}})
            conversation.request("ping")
            conversation.end()
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

    def request(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a request and wait for its response; skip other messages."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        self._send({**message, **({"params": params} if params else {})})
        for line in self._stdout:
            try:
                message = json.loads(line)
            except ValueError:  # The debug line on stdout, which a client must tolerate.
                continue
            if message.get("id") == self._last_id:
                return
        raise CannotStart("the demo server exited before it responded", "mcpspy show last prints its stderr")

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def end(self) -> None:
        """Close stdin and read stdout to its end: closing stdout first would end the server early."""
        self._stdin.close()
        self._stdout.read()

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._stdin.flush()


async def record(folder: str) -> str:
    """Record the demo into a folder; return the error as one sanitized line, or an empty string."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpspy", "demo", "--plain", "--dir", folder),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(RECORD_TIMEOUT):
            _, stderr = await process.communicate()
    except TimeoutError:
        return f"the demo took longer than {RECORD_TIMEOUT:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    last = next((line for line in reversed(stderr.split(b"\n")) if line.strip()), b"")
    return "" if process.returncode == 0 else sanitize_bytes(last) or f"exit {process.returncode}"
