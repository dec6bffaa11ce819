"""A server with one fault, on stdio or, with a port, on HTTP: `server.py FAULT[@REVISION] [PORT]`. Without a known fault it is healthy."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULT, _, REVISION = sys.argv[1].partition("@")
TOOL: dict[str, Any] = {
    "name": "work",
    "description": "Works.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
if FAULT == "schema":
    TOOL["inputSchema"] = {"type": "array", "items": {"type": "integer"}}
if FAULT == "output-schema":
    TOOL["outputSchema"] = {"type": "array", "items": {"type": "string"}}
REVISIONS = {"mismatch": "1999-01-01", "downgrade": "2024-11-05"}

signal.alarm(30)  # It never stays.


def stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def initialized(params: dict[str, Any]) -> dict[str, Any]:
    if FAULT == "hang-initialize":
        stderr("connecting to postgres://db.internal:5432")
        time.sleep(60)
    return {
        "protocolVersion": REVISIONS.get(FAULT, params["protocolVersion"]),
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "faulty", "version": "1.0"},
    }


def called(params: dict[str, Any]) -> dict[str, Any]:
    text, is_error = "done", False
    if FAULT in ("hang", "timeout"):
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
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if FAULT == "bad-result":
        result = {"content": "done"}
    return result


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the response to a message; None for a notification."""
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message or method is None:
        return None
    if method == "initialize":
        return {"result": initialized(params)}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        if params["name"] != TOOL["name"]:
            return {"error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}}
        return {"result": called(params)}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def encoded(message: dict[str, Any], answered: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered}).encode()


def on_stdio() -> None:
    out = sys.stdout.buffer
    if FAULT == "noise":
        out.write(b"Server listening on stdio\n{ level: 'info' }\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if FAULT == "error-noise" and message.get("method") == "tools/call":
            out.write(b"DEBUG work called\n")
        if (answered := answer(message)) is not None:
            data = encoded(message, answered)
            if FAULT == "cut" and message["method"] == "tools/call":
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
            if FAULT == "second" and message["method"] == "tools/call":
                out.write(data + b"\n")
            out.flush()
    if FAULT == "orphan":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = 0

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.reply(404 if "well-known" in self.path else 405)

    def do_DELETE(self) -> None:
        self.reply(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        if self.path != "/mcp":
            self.reply(404, b"Not Found", Content_Type="text/plain")
        elif FAULT == "unauthorized":
            self.reply(401, b"{}", WWW_Authenticate='Bearer error="invalid_token"')
        elif FAULT == "forbidden" and method == "tools/call":
            self.reply(403, b"{}", WWW_Authenticate='Bearer error="insufficient_scope", scope="work"')
        elif FAULT == "lost-session" and method == "tools/call":
            self.reply(
                404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
            )
        elif FAULT == "http-500" and method == "tools/call":
            self.reply(500, b"<h1>Internal Server Error</h1>", Content_Type="text/html")
        elif FAULT == "http-429" and method == "tools/call":
            self.reply(429, b"slow down", Content_Type="text/plain", Retry_After="30")
        elif FAULT == "http-version" and method != "initialize":
            body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Unsupported protocol version"}}'
            self.reply(400, body)
        elif (answered := answer(message)) is None:
            self.reply(202)
        else:
            session = {"Mcp_Session_Id": "s-1"} if method == "initialize" else {}
            self.reply(200, encoded(message, answered), **session)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        server.serve_forever()
    else:
        on_stdio()
