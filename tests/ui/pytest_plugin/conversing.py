"""A client without a library, for servers on stdio and HTTP.

The code under test of the suites in these tests; some of them import nothing else.
"""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any
from urllib.request import Request, urlopen

SECONDS = 30

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tested", "version": "1"},
}


def _messages(calls: tuple[tuple[str, dict[str, Any]], ...]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number, (name, arguments) in enumerate(calls, 1):
        params = {"name": name, "arguments": arguments}
        messages.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return messages


LISTING = {"jsonrpc": "2.0", "id": "tools", "method": "tools/list"}


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _text(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return str(answer["error"]["message"])
    return str(answer["result"]["content"][0]["text"])


def call(command: list[str], *calls: tuple[str, dict[str, Any]], listing: bool = False) -> list[str]:
    """Start a server, call its tools, list them if `listing`, close its stdin; return the texts or errors.

    The calls are sent together, after the response to `initialize`.
    """
    initialize, *messages = _messages(calls) + [LISTING] * listing
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        watchdog = threading.Timer(SECONDS, server.kill)
        watchdog.start()
        server.stdin.write(_line(initialize))
        first = server.stdout.readline()
        rest, _ = server.communicate(b"".join(map(_line, messages)))
        watchdog.cancel()
    answers = {answer["id"]: answer for answer in map(json.loads, (first + rest).splitlines())}
    return [_text(answers[number]) for number in range(1, len(calls) + 1)]


def call_over_http(url: str, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """Call tools of a server over HTTP, in a session that the client ends; return the texts or errors."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    messages = []
    for message in _messages(calls):
        request = Request(url, json.dumps(message).encode(), headers)
        with urlopen(request, timeout=SECONDS) as response:
            body = response.read()
            if session := response.headers.get("Mcp-Session-Id"):
                headers["Mcp-Session-Id"] = session
        if message.get("id"):
            *_, data = (line.removeprefix(b"data: ") for line in body.splitlines() if b"{" in line)
            messages.append(_text(json.loads(data)))
    urlopen(Request(url, headers=headers, method="DELETE"), timeout=SECONDS).close()
    return messages
