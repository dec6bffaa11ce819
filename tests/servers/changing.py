"""A server of 2025-11-25 that opens sessions, adds, sends requests and reports. Its argument changes its behavior.

`lost-tool`, `required`, `result`, `error`: changes its tools or their results. `crash`, `hang`: changes `add`.
`SIGINT`, `SIGTERM`: `add` sends it to the client, and hangs. `mute`, `dies`, `garbage`: changes all responses.
`deaf`: unchanged, but it ignores EOF and SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HUNG = "…"
"""The text of a tool that does not respond."""

how = sys.argv[1] if sys.argv[1:] else "same"
signal.alarm(60)  # A failing test must not leave it running forever.
NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a"],
}
TOOLS: dict[str, Any] = {
    name: {"name": name, "inputSchema": {"type": "object"}} for name in ("open", "use", "ask", "slow", "add")
}
TOOLS["add"]["inputSchema"] = {**NUMBERS, "required": ["a", "b", "c"]} if how == "required" else NUMBERS
if how == "lost-tool":
    del TOOLS["ask"]
session = f"s-{os.getpid():08}"  # A short text may be equal by coincidence, and a pid may be 7.


def send(**members: Any) -> None:
    """Send one message."""
    os.write(1, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")


def received() -> Iterator[Any]:
    """Yield the messages of the client."""
    for line in sys.stdin:
        yield json.loads(line)


messages = received()


def request(number: int, method: str, **params: Any) -> Any:
    """Send a request to the client; return its result."""
    send(id=number, method=method, params=params)
    return next(message for message in messages if message.get("id") == number and "method" not in message)[
        "result"
    ]


def call(name: str, arguments: dict[str, Any], token: Any) -> str | None:
    """Return the text of a tool's result."""
    if name == "open":
        return f"session {session} is open"
    if name == "use":
        return "used" if arguments["session"] == session else None
    if name == "slow":
        for step in (1, 2):
            send(method="notifications/progress", params={"progressToken": token, "progress": step})
        return "done"
    if name == "ask":
        roots = request(0, "roots/list")["roots"]
        colour = request(1, "elicitation/create", message="Which colour?")["content"]["colour"]
        words = request(2, "sampling/createMessage", maxTokens=5)["content"]["text"]
        return f"{len(roots)} {colour} {words}"
    if how == "crash":
        sys.stderr.write("out of numbers\n")
        sys.exit(9)
    if how.startswith("SIG"):
        os.kill(os.getppid(), getattr(signal, how))
    if how.startswith("SIG") or how == "hang":
        return HUNG
    if how == "error":
        raise ValueError("no numbers today")
    return str(arguments["a"] + arguments["b"] + (how == "result"))


if how == "dies":
    sys.stderr.write("first\nlast\n")
    sys.exit(4)
if how == "garbage":
    os.write(1, b"\nHello, this is no JSON-RPC\n")
if how == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for message in messages:
    if "id" not in message or how in ("mute", "garbage"):
        continue
    number, method, params = message["id"], message["method"], message.get("params", {})
    if method == "initialize":
        info = {"name": "changing", "version": "1"}
        send(
            id=number,
            result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info},
        )
    elif method == "tools/list":
        send(id=number, result={"tools": list(TOOLS.values())})
    else:
        try:
            text = call(
                params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken")
            )
        except ValueError as error:
            send(id=number, error={"code": -32603, "message": str(error)})
            continue
        if text is not HUNG:
            content = [{"type": "text", "text": text or "no such session"}]
            send(id=number, result={"content": content, "isError": text is None})
while how == "deaf":
    signal.pause()
