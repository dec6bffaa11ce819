"""A server that returns the params of every JSON-RPC request as its result, with no other work."""

from __future__ import annotations

import json
import sys

for line in sys.stdin.buffer:
    request = json.loads(line)
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": request.get("params")}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
