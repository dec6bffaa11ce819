"""A tiny recording, built line by line, with what is expected of it.

Each message takes 0.1 s, so the expected latencies can be read from the order of the calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

TICK = 0.1
"""Seconds between two messages."""


class OutcomeClass(Enum):
    """The question that every surface answers: did this request fail?"""

    FINE = "fine"
    FAILED = "failed"
    UNANSWERED = "unanswered"
    OPEN = "open"


FINE, FAILED, UNANSWERED, OPEN = OutcomeClass


class Meaning(NamedTuple):
    """The meaning of a state, and the filter terms that find it."""

    kind: OutcomeClass
    terms: frozenset[str]


def _meaning(kind: OutcomeClass, terms: str) -> Meaning:
    return Meaning(kind, frozenset(terms.split()))


MEANINGS = {
    "pending": _meaning(OPEN, "pending"),
    "working": _meaning(OPEN, "pending task working"),
    "input required": _meaning(FINE, "input"),
    "ok": _meaning(FINE, "ok"),
    "tool error": _meaning(FAILED, "error toolerror"),
    "error": _meaning(FAILED, "error rpcerror"),
    "refused": _meaning(FAILED, "error refused"),
    "task failed": _meaning(FAILED, "error taskfailed task"),
    "cancelled": _meaning(FINE, "cancelled"),
    "answered late": _meaning(FINE, "late"),
    "late tool error": _meaning(FAILED, "late error toolerror"),
    "late error": _meaning(FAILED, "late error rpcerror"),
    "redirected": _meaning(UNANSWERED, "noanswer redirected"),
    "incomplete": _meaning(UNANSWERED, "noanswer incomplete"),
    "no answer": _meaning(UNANSWERED, "noanswer"),
    "not continued": _meaning(UNANSWERED, "noanswer input"),
    "task not finished": _meaning(UNANSWERED, "noanswer task"),
    "closed": _meaning(FINE, "closed"),
    "dropped": _meaning(FINE, "dropped"),
    "abandoned": _meaning(FINE, "abandoned"),
    "unknown": _meaning(FINE, "unknown"),
}
"""State as files and exports write it → its meaning."""

TERMS = sorted(frozenset().union(*(meaning.terms for meaning in MEANINGS.values())))
"""The values of `status:` that distinguish outcomes."""

ANY = object()
"""An expected latency that is not compared."""


class Operation(NamedTuple):
    """The expected outcome of one request."""

    key: str
    """Its id as JSON text, after `server:` if the server sent it; `#2` after it if it is the second of this id."""
    status: str
    latency: Any = None
    """Seconds; None if it has none."""
    words: tuple[str, ...] = ()
    """Fragments that a text about it contains."""
    is_injected: bool = False

    @property
    def kind(self) -> OutcomeClass:
        return MEANINGS[self.status].kind


class Case(NamedTuple):
    name: str
    lines: Sequence[bytes]
    """The recording, without its header."""
    transport: str
    operations: Sequence[Operation]
    """All requests, without polls of tasks."""
    polls: frozenset[str]
    """Keys of requests that belong to the operation of another one."""
    errors: int
    unanswered: int
    pending: int
    issues: int
    injected: int
    is_live: bool
    """True if the session is still being recorded."""
    meets_no_errors: bool
    """True if `mcpspy check --no-errors` accepts it."""
    never: frozenset[str]
    """Fragments that no text about it contains."""
    causes: frozenset[str]
    """Causes and observations that `explain` must name."""


class Tape:
    """Builder of a recording and its expectations."""

    def __init__(self, transport: str = "stdio", revision: str = "2025-11-25") -> None:
        self.transport = transport
        self.revision = revision
        self.lines: list[bytes] = []
        self.now = 0.0
        self.operations: list[Operation] = []
        self.polls: set[str] = set()
        self.strays = 0
        """Error responses that settle no request."""
        self.issues = 0
        self.injected = 0
        self.subscriptions = 0
        """Subscriptions that are open: they stay so by design, and no count has them."""
        self.is_live = False
        self.is_kept_back = False
        """A rule or a viewer kept a request from its receiver: `check --no-errors` wants a result for each."""
        self.never: set[str] = set()
        self.causes: set[str] = set()
        self._http = 0
        self._next = 100

    @property
    def is_modern(self) -> bool:
        return self.revision >= "2026"

    def number(self) -> int:
        """Return an id that no request has."""
        self._next += 1
        return self._next

    # The lines of the recording.

    def wait(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 6)

    def say(self, side: str, message: Any, **head: Any) -> float:
        """Add a message; return its time."""
        self.wait(TICK)
        start = json.dumps({"t": self.now, "from": side, **head}, separators=(",", ":"))[:-1]
        self.lines.append(f'{start},"msg":{json.dumps(message)}}}'.encode())
        return self.now

    def noise(self, side: str, text: str, why: str = "not a JSON object or array", **head: Any) -> float:
        """Add a line that is not a message."""
        self.wait(TICK)
        line = {"t": self.now, "from": side, **head, "why": why, "raw": text}
        self.lines.append(json.dumps(line, separators=(",", ":")).encode())
        return self.now

    def note(self, kind: str, **fields: Any) -> float:
        self.lines.append(json.dumps({"t": self.now, "note": kind, **fields}).encode())
        return self.now

    def ask(
        self,
        id_value: Any,
        tool: str = "echo",
        *,
        method: str = "tools/call",
        params: dict[str, Any] | None = None,
        side: str = "client",
        **head: Any,
    ) -> float:
        """Add a request; return its time."""
        of_call = {"name": tool, "arguments": {}} if method == "tools/call" else {}
        members = {**of_call, **(params or {})}
        if self.is_modern:
            members["_meta"] = META
        message = {"jsonrpc": "2.0", "id": id_value, "method": method, "params": members}
        return self.say(side, message, **self._head(side, head))

    def answer(self, id_value: Any, result: Any = None, *, side: str = "server", **head: Any) -> float:
        result = {"content": [{"type": "text", "text": "fine"}]} if result is None else result
        if self.is_modern:
            result = {"resultType": "complete", **result}
        return self.say(side, {"jsonrpc": "2.0", "id": id_value, "result": result}, **self._head(side, head))

    def fail(
        self,
        id_value: Any,
        text: str = "server down",
        *,
        code: int = -32000,
        side: str = "server",
        **head: Any,
    ) -> float:
        error = {"code": code, "message": text}
        return self.say(side, {"jsonrpc": "2.0", "id": id_value, "error": error}, **self._head(side, head))

    def fail_tool(self, id_value: Any, text: str = "boom", **head: Any) -> float:
        return self.answer(id_value, {"content": [{"type": "text", "text": text}], "isError": True}, **head)

    def notify(self, side: str, method: str, params: dict[str, Any] | None = None, **head: Any) -> float:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        return self.say(side, message | ({"params": params} if params else {}), **self._head(side, head))

    def cancel(self, id_value: Any, *, side: str = "client", **head: Any) -> float:
        return self.notify(side, "notifications/cancelled", {"requestId": id_value}, **head)

    def post(self) -> None:
        """Begin an HTTP exchange: the messages that follow are in it."""
        self._http += 1

    @property
    def carrier(self) -> dict[str, Any]:
        """The members of a frame or a note that name its HTTP exchange."""
        return {"stream": str(self._http) if self.is_modern else "1", "http": self._http}

    def head(self, status: int | None, *, method: str = "POST", path: str = "/mcp", **response: str) -> None:
        """Add the head of the response."""
        headers = {name.replace("_", "-"): value for name, value in response.items()}
        self.note(
            "http",
            **self.carrier,
            method=method,
            path=path,
            status=status,
            asked_at=round(self.now - TICK / 2, 6),
            request={"content-type": "application/json"},
            response=headers,
        )

    def end(self, hung_up: str | None = None, **fields: Any) -> None:
        """End the HTTP exchange."""
        self.note("http-end", **self.carrier, hung_up=hung_up, **fields)

    def _head(self, side: str, head: dict[str, Any]) -> dict[str, Any]:
        return {**self.carrier, **head} if self.transport == "http" and self._http else head

    def hello(self) -> None:
        """Add the handshake."""
        if self.transport == "http":
            self.post()
        if self.is_modern:
            begin = self.ask(0, method="server/discover")
            versions = {"supportedVersions": [self.revision], "capabilities": {"tools": {}}}
            if self.transport == "http":
                self.head(200, content_type="application/json")
            end = self.answer(
                0, {**versions, "_meta": {PREFIX + "serverInfo": {"name": "server", "version": "2"}}}
            )
        else:
            version = {"protocolVersion": self.revision, "capabilities": {}}
            begin = self.ask(0, method="initialize", params={**version, "clientInfo": HOST})
            if self.transport == "http":
                self.head(200, content_type="application/json")
            tasks: dict[str, Any] = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
            result = {
                **version,
                "capabilities": {"tools": {}, **tasks},
                "serverInfo": {"name": "server", "version": "2"},
            }
            end = self.answer(0, result)
        if self.transport == "http":
            self.end()
        self.expect(0, "ok", end - begin)
        if not self.is_modern:
            if self.transport == "http":
                self.post()
            self.notify("client", "notifications/initialized")
            if self.transport == "http":
                self.head(202)
                self.end()

    def bye(self, code: int | None = 0, signal: str | None = None) -> None:
        """Add the end of the session."""
        if self.transport == "stdio" and code == 0:
            self.note("eof", **{"from": "client"})
        self.wait(TICK)
        self.note("exit", code=code, signal=signal)

    # The expectations.

    def expect(
        self,
        id_value: Any,
        status: str,
        latency: Any = None,
        *words: str,
        server: bool = False,
        injected: bool = False,
    ) -> None:
        """Expect an outcome of the request with this id."""
        key = ("server:" if server else "") + json.dumps(id_value)
        if any(each.key == key for each in self.operations):
            key += "#2"
        latency = round(latency, 6) if isinstance(latency, float) else latency
        self.operations.append(Operation(key, status, latency, words, injected))

    def poll(
        self, id_value: Any, method: str, task: str, result: dict[str, Any] | None = None, **head: Any
    ) -> float:
        """Add a request about a task and its response; return the time of the response."""
        self.ask_about(id_value, method, task, **head)
        return self.answer(id_value, result, **head)

    def ask_about(self, id_value: Any, method: str, task: str, **head: Any) -> float:
        self.polls.add(json.dumps(id_value))
        return self.ask(id_value, method=method, params={"taskId": task}, **head)

    def case(self, name: str) -> Case:
        own = [each for each in self.operations if not each.is_injected]
        kinds = [each.kind for each in own]
        errors = kinds.count(FAILED) + self.strays
        unanswered = kinds.count(UNANSWERED)
        return Case(
            name,
            tuple(self.lines),
            self.transport,
            tuple(self.operations),
            frozenset(self.polls),
            errors,
            unanswered,
            kinds.count(OPEN) - self.subscriptions,
            self.issues,
            self.injected,
            self.is_live,
            not (errors or unanswered or self.is_kept_back or OPEN in kinds),
            frozenset(self.never),
            frozenset(self.causes),
        )


PREFIX = "io.modelcontextprotocol/"
HOST = {"name": "host", "version": "1"}
META = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientCapabilities": {"elicitation": {"form": {}}, "extensions": {PREFIX + "tasks": {}}},
    PREFIX + "clientInfo": HOST,
}

Scene = Callable[[Tape], None]
"""Adds tricky requests to a recording, and what is expected of them."""
