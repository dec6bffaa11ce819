"""Builders of the lines that many examples of causes have in common.

The notation is that of `analysis.lint.examples`. Each function returns one line or a few; `session` joins them, after a
head such as `@ http`. Ids are 2 unless given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

JsonObject = Mapping[str, object]

_A_TASK = {"createdAt": "2026-11-21T00:00:00Z", "lastUpdatedAt": "2026-11-21T00:00:00Z", "ttl": 60000}


def _line(mark: str, message: JsonObject) -> str:
    return f"{mark} {json.dumps(message)}"


def session(*lines: str) -> str:
    return "\n".join(lines)


def request(method: str, number: int = 2, **params: object) -> str:
    """Return a request of the client."""
    return _line(">", {"id": number, "method": method, **({"params": params} if params else {})})


def asked(method: str, number: int = 7, **params: object) -> str:
    """Return a request of the server."""
    return request(method, number, **params).replace(">", "<", 1)


def notified(mark: str, method: str, **params: object) -> str:
    """Return a notification of the client (`>`) or of the server (`<`)."""
    return _line(mark, {"method": method, **({"params": params} if params else {})})


def call(number: int = 2, name: str = "a", **params: object) -> str:
    return request("tools/call", number, name=name, arguments={}, **params)


def result(number: int = 2, **members: object) -> str:
    """Return a response of the server."""
    return _line("<", {"id": number, "result": members})


def done(number: int = 2, *texts: str, **members: object) -> str:
    """Return the result of a call."""
    return result(number, content=[{"type": "text", "text": text} for text in texts], **members)


def error(message: str, code: int = -32603, number: int | None = 2, mark: str = "<") -> str:
    return _line(mark, {"id": number, "error": {"code": code, "message": message}})


def listed(*tools: str | JsonObject, number: int = 2, **members: object) -> str:
    """Return tools/list with its result; a name is that of a tool without a flaw."""
    whole = [with_schema(name=tool) if isinstance(tool, str) else tool for tool in tools]
    return session(request("tools/list", number), result(number, tools=whole, **members))


def with_schema(name: str = "a", **members: object) -> JsonObject:
    """Return a tool whose input schema has these members."""
    return {"name": name, "description": "b", "inputSchema": {"type": "object", **members}}


def task(number: int, *states: str) -> str:
    """Return a call that is answered with a task, and its states when the client asks for them."""
    begun = result(number, task=_A_TASK | {"taskId": "t", "status": "working"})
    asked = [request("tasks/get", each, taskId="t") for each in range(number + 1, number + 1 + len(states))]
    told = [
        result(each, **_A_TASK, taskId="t", status=state) for each, state in enumerate(states, number + 1)
    ]
    return session(call(number, task={"ttl": 60000}), begun, *map(session, asked, told))


def cancelled(number: int = 2) -> str:
    return notified(">", "notifications/cancelled", requestId=number, reason="Request timed out")


def initialize(number: int = 1, client: str = "a", revision: str = "2025-11-25") -> str:
    info = {"name": client, "version": "1"}
    return request("initialize", number, protocolVersion=revision, capabilities={}, clientInfo=info)


def welcome(number: int = 1, revision: str = "2025-11-25", **members: object) -> str:
    """Return the result of initialize."""
    info, capabilities = {"name": "s", "version": "1"}, {"tools": {"listChanged": True}}
    known = {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}
    return result(number, **known | members)


def host(name: str, *lines: str) -> str:
    """Return a session of a host with a name, whose limits are known."""
    return session("@ bare", initialize(0, name), welcome(0), INITIALIZED, *lines)


def answered(status: int, *parts: JsonObject | str) -> str:
    """Return an HTTP response: changes to the recorded headers of request and response, a body that
    is not a message.
    """
    return " ".join(["=", str(status), *map(json.dumps, parts)])


def first_answer(status: int, *parts: JsonObject | str) -> str:
    """Return a session over HTTP whose first request, initialize, is answered so."""
    return session("@ http bare", initialize(), answered(status, *parts))


def list_answer(status: int, *parts: JsonObject | str) -> str:
    """Return a session over HTTP in which tools/list is answered so."""
    return session("@ http", request("tools/list"), answered(status, *parts))


def notification_answer(status: int, *parts: JsonObject | str) -> str:
    return session("@ http", notified(">", "notifications/x"), answered(status, *parts))


def http(
    method: str, status: int | None, number: int = 50, head: JsonObject | None = None, **response: str
) -> str:
    """Return an HTTP exchange without a message; with `head`, in place of that of a GET for a stream."""
    head = {"accept": "text/event-stream"} if head is None else head
    fields = {"http": number, "method": method, "path": "/mcp", "status": status, "request": head}
    given = {name.replace("_", "-"): value for name, value in response.items()}
    return session(note("http", **fields, response=given), note("http-end", http=number))


def pings(*numbers: int) -> str:
    """Return requests that are answered."""
    return session(*(session(request("ping", number), result(number)) for number in numbers))


def unauthorized(*lines: str) -> str:
    """Return a session over HTTP whose first request gets 401, and what the client does then."""
    return session(first_answer(401, {}, {"www-authenticate": "Bearer"}), *lines)


def ping_answered(status: int, *parts: JsonObject | str) -> str:
    """Return a ping of the server over HTTP, and the answer to the POST with its response."""
    pinged = asked("ping").replace("<", "~", 1)
    return session(pinged, _line(">", {"id": 7, "result": {}}), answered(status, *parts))


def oauth(step: str, status: int, number: int = 63, **fields: object) -> str:
    return note("oauth", http=number, stream="1", flow=1, step=step, status=status, **fields)


def note(kind: str, **fields: object) -> str:
    return f"* {kind} {json.dumps(fields)}"


def stderr(text: str) -> str:
    return note("stderr", text=text)


def exited(code: int) -> str:
    return note("exit", code=code, signal=None)


CLIENT_CLOSED = '* eof {"from":"client"}'
END = session(CLIENT_CLOSED, exited(0))
"""The client closes stdin, and the server ends."""

EVENT_STREAM = {"content-type": "text/event-stream"}
WITH_TOKEN = {"authorization": "Bearer x"}


def not_started(text: str, code: int = 1, head: str = "@ bare") -> str:
    """Return the session of a server that prints an error and ends before it answers."""
    return session(head, initialize(), stderr(text), exited(code))


INITIALIZED = notified(">", "notifications/initialized")
ISSUER = "http://127.0.0.1:3001"

_SERVER = {
    "issuer": ISSUER,
    "address": ISSUER,
    "pkce": ["S256"],
    "names": ["issuer", "registration_endpoint"],
}
METADATA = session(
    oauth("resource metadata", 200, 61, resource=f"{ISSUER}/mcp", address=ISSUER, path="/mcp"),
    oauth("server metadata", 200, 62, **_SERVER),
)
"""The steps of a sign-in before the registration, without a flaw."""

HEALTHY = (
    session(listed("a"), call(3), done(3), END),
    session("@ http", listed("a"), call(3), done(3)),
    session("@ 2026-07-28", call(), done(), END),
)
"""Sessions in which no cause may be named: the negative examples that all have in common."""
