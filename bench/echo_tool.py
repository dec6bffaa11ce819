"""An MCP server of 2025-11-25 with the tool `echo(text, times)`, and only what its clients require beside it."""

from __future__ import annotations

import json
import sys

INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1"},
}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

for line in sys.stdin.buffer:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "initialize":
        answer["result"] = INFO
    elif request["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
    else:
        given = request["params"]["arguments"]
        answer["result"] = {"content": [{"type": "text", "text": given["text"] * given.get("times", 1)}]}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()
