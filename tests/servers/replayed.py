"""A server of 2025-11-25 for replays: `echo` returns its text, `pid` a text that differs in each run. Stdlib only.

Its argument changes it: `different` echoes in upper case, `breaking` fails, `renamed` describes its tool in other words,
`slow` takes a second for each call, `ends` exits at the second call, `chatty` writes a line to stderr for each call.
"""

from __future__ import annotations

import json
import os
import sys
import time

how = sys.argv[1] if sys.argv[1:] else "same"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {
        "name": "echo",
        "description": "repeats" if how == "renamed" else "returns its text",
        "inputSchema": SCHEMA,
    },
    {"name": "pid", "inputSchema": {"type": "object"}},
]
SERVER = {"name": "replayed", "version": "1"}
calls = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": SERVER,
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        calls += 1
        if how == "slow":
            time.sleep(1)
        if how == "ends" and calls == 2:
            print("out of memory", file=sys.stderr, flush=True)
            sys.exit(3)
        if how == "chatty":
            print("called", calls, file=sys.stderr, flush=True)
        text = (
            f"process-number {os.getpid() + 100_000} x"
            if params["name"] == "pid"
            else params["arguments"]["text"]
        )
        text = text.upper() if how == "different" else text
        result = {"content": [{"type": "text", "text": text}], "isError": how == "breaking"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
