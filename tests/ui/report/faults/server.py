"""A shop's server with one fault, on stdio or, with a port, on HTTP: `server.py FAULT[@REVISION] [PORT]`.

REVISION is its newest one. Over HTTP, `/mcp` is Streamable HTTP, and `/sse` is the transport of 2024-11-05.
Without a known fault it is healthy.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

FAULT, _, REVISION = sys.argv[1].partition("@")
REVISION = REVISION or "2025-11-25"
MODERN = "2026-07-28"
TOOL: dict[str, Any] = {
    "name": "work",
    "description": "Works.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
if FAULT == "schema":
    TOOL["inputSchema"] = {"type": "array", "items": {"type": "integer"}}
if FAULT == "output-schema":
    TOOL["outputSchema"] = {"type": "array", "items": {"type": "string"}}

SUBJECTS = {
    "orders": "the orders of a customer, the newest first, with their state, positions, and the expected delivery",
    "products": "the products of the catalog by words of their names or descriptions, with price and stock",
    "customers": "the customers by name, address or number, without those that have closed their account",
    "deliveries": "the deliveries of a day by their carrier and region, with the time window and the driver",
    "returns": "the returned goods that are not refunded yet, with the reason and the condition of each",
}
SHOP = [
    {
        "name": f"search_{subject}",
        "description": f"Search {description}.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that a match contains, in any order."},
                "limit": {"type": "integer", "description": "Maximum number of matches.", "default": 20},
            },
            "required": ["query"],
        },
    }
    for subject, description in SUBJECTS.items()
]

signal.alarm(40)  # It never stays.


def stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def initialized(params: dict[str, Any]) -> dict[str, Any]:
    if FAULT == "hang-initialize":
        stderr("connecting to postgres://db.internal:5432")
        time.sleep(60)
    if FAULT == "slow-start":
        stderr("loading the catalog")
        time.sleep(11)
    return {
        "protocolVersion": "1999-01-01" if FAULT == "mismatch" else min(params["protocolVersion"], REVISION),
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "faulty", "version": "1.0"},
    }


def searched(subject: str, query: str) -> dict[str, Any]:
    """Return the result of a healthy tool."""
    lines = [f"{subject} {number}: {query}, {'open' if number % 3 else 'done'}, 2026-11-{number:02}, {number * 7} EUR" for number in range(11, 18)]  # fmt: skip
    return {"content": [{"type": "text", "text": "\n".join(lines)}], "isError": False}


def called(params: dict[str, Any]) -> dict[str, Any]:
    text, is_error = "done", False
    if FAULT == "hang":
        stderr("waiting for lock")
        time.sleep(60)
    elif FAULT == "crash":
        params["arguments"]["missing"]
    elif FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif FAULT == "exit":
        stderr("fatal: lost the connection to the database")
        os._exit(4)
    elif FAULT == "swallowed":
        text = "Error: ENOENT: no such file or directory, open '/data/a.txt'"
    elif FAULT == "tool-error":
        text, is_error = "disk quota exceeded", True
    elif FAULT == "large":
        text = "0123456789 " * 6000
    elif "n" not in params.get("arguments", {}) or not isinstance(params["arguments"]["n"], int):
        text, is_error = "Input validation error: n is not an integer", True
    if FAULT == "bad-result":
        return {"content": "done"}
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None for an unknown method or tool."""
    if method == "initialize":
        return initialized(params)
    if method == "server/discover" and REVISION == MODERN:
        return {
            "supportedVersions": ["2099-01-01" if FAULT == "mismatch" else MODERN],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }
    if method == "tools/list":
        hints = {"ttlMs": 0, "cacheScope": "private"} if REVISION == MODERN else {}
        return {"tools": [TOOL, *SHOP], **hints}
    if method == "tools/call" and params["name"] == TOOL["name"]:
        return called(params)
    if method == "tools/call" and params["name"] in (tool["name"] for tool in SHOP):
        return searched(params["name"].removeprefix("search_"), params["arguments"]["query"])
    return {} if method == "ping" else None


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the response to a message; None for a notification."""
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message or method is None:
        return None
    if (found := result(method, params)) is not None:
        if REVISION == MODERN:
            server = {"name": "faulty", "version": "1.0"}
            found |= {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": server}}
        return {"result": found}
    if method == "tools/call":
        return {"error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def encoded(message: dict[str, Any], answered: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered}).encode()


def is_work(message: dict[str, Any]) -> bool:
    """Return whether a message calls the tool that has the fault, or one that does not exist."""
    return message.get("method") == "tools/call" and not message["params"]["name"].startswith("search_")


def on_stdio() -> None:
    out = sys.stdout.buffer
    if FAULT == "noise":
        out.write(b"Server listening on stdio\n{ level: 'info' }\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if FAULT == "error-noise" and is_work(message):
            out.write(b"DEBUG work called\n")
        if (answered := answer(message)) is not None:
            data = encoded(message, answered)
            if FAULT == "cut" and is_work(message):
                answered["result"]["content"][0]["text"] = "x" * 9000
                data = encoded(message, answered)[:4095]
            out.write(data + b"\n")
            out.flush()
            if FAULT == "list-changed" and message["method"] == "tools/list":
                out.write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
            if FAULT == "sampling" and message["method"] == "tools/list":
                out.write(
                    b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}\n'
                )
            out.flush()
    if FAULT == "orphan":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    events: queue.Queue[bytes] = queue.Queue()
    """Responses for the event stream of `/sse`; there is one client."""

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def oauth(self, form: bytes = b"") -> bool:
        """Answer a request for metadata, a registration, a code or a token; return False for any other."""
        base = f"http://127.0.0.1:{sys.argv[2]}"
        path, _, query = self.path.partition("?")
        if not FAULT.startswith("oauth-") or path == "/mcp":
            return False
        code, found = 200, dict[str, Any]()
        if path.startswith("/.well-known/oauth-protected-resource"):
            found = {"resource": f"{base}/mcp", "authorization_servers": [base]}
        elif path == "/.well-known/oauth-authorization-server":
            found = {
                f"{name}_endpoint": f"{base}/{name}" for name in ("authorization", "token", "registration")
            }
            found |= {
                "issuer": base,
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        elif path == "/registration" and FAULT == "oauth-registration":
            code, found = 403, {"error": "access_denied", "error_description": "registration is closed"}
        elif path == "/registration":
            code, found = 201, {**json.loads(form), "client_id": "client-1"}
        elif path == "/authorization":
            asked = dict(parse_qsl(query))
            self.reply(302, Location=f"{asked['redirect_uri']}?code=1&state={asked['state']}")
            return True
        elif path == "/token":
            code, found = 400, {"error": "invalid_target", "error_description": "unknown resource"}
        else:
            return False
        self.reply(code, json.dumps(found).encode())
        return True

    def do_GET(self) -> None:
        if self.oauth():
            return
        if self.path != "/sse":
            self.reply(404 if "well-known" in self.path else 405)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        event = b"event: endpoint\ndata: /messages?session=1"
        while True:
            self.wfile.write(event + b"\n\n")
            event = b"event: message\ndata: " + self.events.get()

    def do_DELETE(self) -> None:
        self.reply(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.oauth(body):
            return
        message = json.loads(body)
        method = message.get("method")
        if self.path not in ("/mcp", "/messages?session=1"):
            self.reply(404, b"Not Found", Content_Type="text/plain")
        elif FAULT.startswith("oauth-"):
            metadata = f"http://127.0.0.1:{sys.argv[2]}/.well-known/oauth-protected-resource/mcp"
            self.reply(401, b"{}", WWW_Authenticate=f'Bearer resource_metadata="{metadata}"')
        elif FAULT == "unauthorized" or (FAULT == "expired" and is_work(message)):
            self.reply(401, b"{}", WWW_Authenticate='Bearer error="invalid_token"')
        elif FAULT == "forbidden" and is_work(message):
            self.reply(403, b"{}", WWW_Authenticate='Bearer error="insufficient_scope", scope="work"')
        elif FAULT == "lost-session" and is_work(message):
            self.reply(
                404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
            )
        elif FAULT == "http-500" and is_work(message):
            self.reply(500, b"<h1>Internal Server Error</h1>", Content_Type="text/html")
        elif FAULT == "http-429" and is_work(message):
            self.reply(429, b"slow down", Content_Type="text/plain", Retry_After="30")
        elif FAULT == "http-version" and method != "initialize":
            refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Unsupported protocol version"}}'
            self.reply(400, refusal)
        elif self.path != "/mcp":
            self.reply(202)
            if (answered := answer(message)) is not None:
                self.events.put(encoded(message, answered))
        elif (answered := answer(message)) is None:
            self.reply(202)
        else:
            session = {"Mcp_Session_Id": "s-1"} if method == "initialize" else {}
            error = answered.get("error", {}).get("code", 0) if REVISION == MODERN else 0
            self.reply({-32601: 404, -32602: 400}.get(error, 200), encoded(message, answered), **session)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        server.daemon_threads = True
        server.serve_forever()
    else:
        on_stdio()
