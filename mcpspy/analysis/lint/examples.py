r"""The notation of the rules' examples (docs/lint.md): lines of text, and the entries they denote.

Omitted parts are valid: members of a line, the handshake, HTTP headers.

    @ 2026-07-28 http          revision (default: 2025-11-25), transport; `bare`: without a handshake;
                               `client={…}`, `server={…}`: other capabilities, without spaces;
                               `command=[…]`: the server's command, without spaces
    > {"id":2,"method":"ping"} the client; `jsonrpc` is added, and in 2026-07-28 `_meta`
    < {"id":2,"result":{}}     the server; in 2026-07-28 `resultType` is added
    ~ {"id":7,"method":"ping"} the server, over HTTP on the GET stream; over HTTP+SSE (`sse`) so is `<`
    << DEBUG: hello            exactly these bytes; \\x0d at the end is a CR LF, \\x04 no line ending, or blank line
    = 200 {…} {…} "…"          status, changes to the headers of request and response, and a body that is not a message
    * exit {"code":0}          a note
    + 0.1                      the following lines are 0.1 seconds apart (default: 2)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mcpspy.core.framing import BLANK_LINE
from mcpspy.core.protocol.mcp_headers import NAMED
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, SERVER
from mcpspy.core.recording.decode import Entry, Frame, Header, Note

SESSION_ID = "s-1"
GET = 1000
"""Number of the HTTP exchange of the GET stream."""
UPSTREAM = "http://127.0.0.1:3001/mcp"

CLIENT_CAPABILITIES: dict[str, Any] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
SERVER_CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
    "tasks": {"requests": {"tools": {"call": {}}}},
}

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_CACHED = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "skills/list", "skills/get")  # fmt: skip


def header_of(text: str) -> Header:
    words = _head(text)
    transport = "http" if {"http", "sse"} & set(words) else "stdio"
    upstream = UPSTREAM if transport == "http" else None
    command = next((json.loads(word[8:]) for word in words if word.startswith("command=")), None)
    return Header(
        mcpspy=1,
        id="0e8a3b1e",
        started="2026-11-21T00:00:00.000Z",
        transport=transport,
        upstream=upstream,
        command=command,
    )


def entries_of(text: str) -> Iterator[Entry]:
    """Yield the entries of an example; raise ValueError if a line is not in the notation."""
    words = _head(text)
    revision = next((word for word in words if word[:1] == "2"), "2025-11-25")
    declared = {"client": CLIENT_CAPABILITIES, "server": SERVER_CAPABILITIES}
    for word in words:
        side, _, capabilities = word.partition("=")
        if side in declared:
            declared[side] = json.loads(capabilities)
    builder = _EntryBuilder(revision, words, declared["client"])
    if revision < MODERN and "bare" not in words:
        for line in _handshake(revision, **declared):
            yield from builder.line(line)
    for line in text.strip().splitlines():
        if not line.lstrip().startswith("@"):
            yield from builder.line(line.strip())
    yield from builder.close()


def _head(text: str) -> list[str]:
    first = text.strip().partition("\n")[0].strip()
    return first[1:].split() if first.startswith("@") else []


def _handshake(revision: str, client: dict[str, Any], server: dict[str, Any]) -> Iterator[str]:
    params = {"protocolVersion": revision, "capabilities": client, "clientInfo": _peer("host")}
    result = {"protocolVersion": revision, "capabilities": server, "serverInfo": _peer("server")}
    yield "> " + json.dumps({"id": 0, "method": "initialize", "params": params})
    yield "< " + json.dumps({"id": 0, "result": result})
    yield '> {"method":"notifications/initialized"}'


def _peer(name: str) -> dict[str, str]:
    return {"name": name, "version": "1.0"}


class _EntryBuilder:
    """Builds the entries of an example, line by line."""

    def __init__(self, revision: str, words: list[str], client: dict[str, Any]) -> None:
        self._revision = revision
        self._is_http = "http" in words or "sse" in words
        self._is_sse = "sse" in words
        self._client = client
        self._has_get = False
        self._at = 0.0
        self._step = 2.0
        self._http = 0
        self._posted: dict[str, Any] | None = None
        self._has_head = True
        self._body: dict[str, str] = {}
        self._methods: dict[str, str] = {}

    def line(self, line: str) -> Iterator[Entry]:
        self._at += self._step
        mark, _, rest = line.partition(" ")
        if mark == "+":
            self._step = float(rest)
        elif mark == "*":
            kind, _, fields = rest.partition(" ")
            yield Note(self._at, kind, json.loads(fields or "{}"))
        elif mark == "=":
            yield from self._headed(rest)
        elif mark in (">", "<", "~", ">>", "<<"):
            side = CLIENT if mark[0] == ">" else SERVER
            data = self._written(side, json.loads(rest)) if len(mark) == 1 else rest.encode()
            data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), data) if len(mark) == 2 else data
            on_get = self._is_http and self._revision < MODERN and (mark == "~" or self._is_sse)
            yield from self._on_get(data) if on_get and side == SERVER else self._frame(side, data)
        else:
            raise ValueError(f"not in the notation of examples: {line}")

    def close(self) -> Iterator[Entry]:
        yield from self._end_post()
        if self._has_get:
            yield Note(self._at, "http-end", {"http": GET, "stream": "1", "hung_up": None})

    def _end_post(self) -> Iterator[Entry]:
        if self._is_http and self._http:
            if not self._has_head:
                yield from self._headed("")
            yield Note(self._at, "http-end", {**self._fields(), "hung_up": None, **self._body})

    def _on_get(self, data: bytes) -> Iterator[Entry]:
        if not self._has_get:
            yield from self._get()
        yield Frame(self._at, SERVER, data, "1", GET)

    def _get(self) -> Iterator[Entry]:
        self._has_get = True
        request, _ = self._headers()
        fields = {"http": GET, "stream": "1"}
        head = {
            "request": {**request, "accept": "text/event-stream"},
            "response": {"content-type": "text/event-stream"},
        }
        yield Note(
            self._at,
            "http",
            {**fields, "method": "GET", "path": "/sse" if self._is_sse else "/mcp", "status": 200, **head},
        )
        if self._is_sse:
            yield Note(self._at, "sse", {**fields, "event": "endpoint", "data": "/messages?sessionId=s-1"})

    def _frame(self, side: str, data: bytes) -> Iterator[Entry]:
        eol = "\n"
        if data.endswith(b"\r"):
            data, eol = data[:-1], "\r\n"
        elif data.endswith(b"\x04"):
            data, eol = data[:-1], ""
        if not self._is_http:
            yield Frame(self._at, side, data, eol=eol)
            return
        if side == CLIENT:
            yield from self._end_post() if self._has_get or not self._is_sse else self._get()
            self._http += 1
            self._has_head = False
            self._body = {}
            try:
                posted = json.loads(data)
            except ValueError:
                posted = None
            self._posted = posted if isinstance(posted, dict) else None
        elif not self._has_head:
            yield from self._headed("")
        yield Frame(self._at, side, data, "1", self._http, eol=eol, lacks=None if eol else BLANK_LINE)

    def _headed(self, rest: str) -> Iterator[Entry]:
        self._has_head = True
        status_text, _, given = rest.partition(" ")
        decoder = json.JSONDecoder()
        changes: list[dict[str, Any]] = []
        while given.strip():
            value, end = decoder.raw_decode(given := given.strip())
            if isinstance(value, str):
                self._body = {"body": value}
            else:
                changes.append(value)
            given = given[end:]
        request, response = self._headers()
        for number, change in enumerate(changes):
            (request, response)[number].update(change)
        error = {"error": request.pop(":error")} if ":error" in request else {}
        fields = {
            **self._fields(),
            **error,
            "method": request.pop(":method", "POST"),
            "path": request.pop(":path", "/messages?sessionId=s-1" if self._is_sse else "/mcp"),
            "status": int(status_text)
            if status_text
            else (200 if self._is_request and not self._is_sse else 202),
            "request": {name: value for name, value in request.items() if value is not None},
            "response": {name: value for name, value in response.items() if value is not None},
        }
        yield Note(self._at, "http", fields)

    @property
    def _is_request(self) -> bool:
        return self._posted is not None and "method" in self._posted and "id" in self._posted

    def _fields(self) -> dict[str, Any]:
        return {"http": self._http, "stream": "1"}

    def _headers(self) -> tuple[dict[str, Any], dict[str, Any]]:
        posted = self._posted or {}
        method, params = posted.get("method"), posted.get("params")
        request: dict[str, Any] = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        response: dict[str, Any] = {"content-type": "application/json"} if self._is_request else {}
        if self._is_sse:
            return {"content-type": "application/json"}, {}
        if self._revision >= MODERN:
            request |= {"mcp-protocol-version": self._revision, "mcp-method": method}
            if isinstance(params, dict) and method in NAMED:
                request["mcp-name"] = params.get("name", params.get("uri", params.get("taskId")))
        elif method == "initialize":
            response["mcp-session-id"] = SESSION_ID
        else:
            request |= {"mcp-session-id": SESSION_ID}
            if self._revision >= "2025-06-18":
                request["mcp-protocol-version"] = self._revision
        return request, response

    def _written(self, side: str, message: dict[str, Any]) -> bytes:
        whole = {"jsonrpc": "2.0", **message}
        if self._revision >= MODERN:
            method = message.get("method")
            if side == CLIENT and method is not None and "id" in message:
                self._methods[json.dumps(message["id"])] = method
                meta = {
                    META + "protocolVersion": self._revision,
                    META + "clientInfo": _peer("host"),
                    META + "clientCapabilities": self._client,
                }
                params = message.get("params", {})
                whole["params"] = {**params, "_meta": {**meta, **params.get("_meta", {})}}
            elif side == SERVER and isinstance(result := message.get("result"), dict):
                method = self._methods.get(json.dumps(message.get("id")))
                hints = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHED else {}
                meta = {META + "serverInfo": _peer("server")}
                whole["result"] = {"resultType": "complete", **hints, "_meta": meta, **result}
        return json.dumps(whole, ensure_ascii=False).encode()
