"""Sessions for tests, built line by line."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.analysis.stats import MessageGroup, StatsCollector
from mcpspy.core.query.parser import parse
from mcpspy.core.recording.decode import Header

HEADER = Header(
    mcpspy=1, id="ab12cd34", started="2026-01-01T00:00:00.000Z", name="tested", command=["server"]
)

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}}


class Talk:
    """Builder of a session."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def say(self, at: float, side: str, message: Any, **head: Any) -> Talk:
        """Add a message from one side."""
        start = json.dumps({"t": at, "from": side, **head}, separators=(",", ":"))[:-1]
        self.lines.append(f'{start},"msg":{json.dumps(message)}}}'.encode())
        return self

    def note(self, at: float, kind: str, **fields: Any) -> Talk:
        """Add a note."""
        self.lines.append(json.dumps({"t": at, "note": kind, **fields}).encode())
        return self

    def hello(self, at: float = 0.0, took: float = 0.5, **head: Any) -> Talk:
        """Add a handshake, with the id 0."""
        self.ask(0, at, "initialize", {**HELLO, "clientInfo": {"name": "host", "version": "1"}}, **head)
        self.answer(0, at + took, {**HELLO, "serverInfo": {"name": "server", "version": "2"}}, **head)
        return self.say(
            at + took, "client", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **head
        )

    def ask(
        self, number: Any, at: float, method: str, params: Any = None, side: str = "client", **head: Any
    ) -> Talk:
        """Add a request."""
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        return self.say(at, side, message | ({"params": params} if params is not None else {}), **head)

    def answer(
        self,
        number: Any,
        at: float,
        result: Any = None,
        side: str = "server",
        *,
        code: int | None = None,
        **head: Any,
    ) -> Talk:
        """Add a response from the other side; with a code, an error."""
        outcome = {"result": result or {}} if code is None else {"error": {"code": code, "message": "no"}}
        return self.say(at, side, {"jsonrpc": "2.0", "id": number, **outcome}, **head)

    def call(self, number: int, begin: float, end: float, tool: str = "echo", **result: Any) -> Talk:
        """Add a tool call and its response."""
        return self.ask(number, begin, "tools/call", {"name": tool}).answer(number, end, result)

    def cancel(self, number: Any, at: float) -> Talk:
        """Add a cancellation by the client."""
        params = {"requestId": number}
        return self.say(
            at, "client", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        )

    def stats(self, query: str | None = None, *, is_over: bool = True, top: int = 10) -> StatsCollector:
        """Return the statistics."""
        stats = StatsCollector(HEADER, None if query is None else parse(query), top)
        stats.begin_part()
        stats.add_lines(self.lines)
        stats.finish(is_over=is_over)
        return stats


def group(
    stats: StatsCollector, method: str, subject: str | None = None, side: str = "client"
) -> MessageGroup:
    """Return the group with this name."""
    (found,) = [
        each for each in stats.groups.all if (each.method, each.subject, each.side) == (method, subject, side)
    ]
    return found
