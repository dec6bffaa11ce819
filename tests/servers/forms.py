"""A server with tools for every kind of field, prompts, templates, and a call that ends only when it is cancelled."""

from __future__ import annotations

import json
import sys
from typing import Any

BOOK = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where to stay.", "minLength": 2},
        "nights": {"type": "integer", "minimum": 1, "maximum": 14, "default": 2},
        "breakfast": {"type": "boolean"},
        "room": {"enum": ["single", "double"], "description": "The kind of room."},
        "guests": {"type": "array", "items": {"type": "string"}},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "zip": {"type": "string"}},
            "required": ["street"],
        },
    },
    "required": ["city", "room"],
}

TOOLS: list[dict[str, Any]] = [
    {"name": "book", "title": "Book a room", "description": "Books a room.", "inputSchema": BOOK,
     "annotations": {"destructiveHint": True, "readOnlyHint": False}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {"name": "slow", "description": "Waits until it is cancelled.", "inputSchema": {"type": "object"}},
    {"name": "heard", "description": "The cancellations so far.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
    {"name": "<img src=x onerror=alert(1)>\x1b[31m", "description": "<script>alert(1)</script>",
     "inputSchema": {"properties": {"<b>\x1b[2J": {"type": "string", "description": "<i>\x07"}}}},
    {"name": "many", "inputSchema": {
        "properties": {f"p{number}": {"type": "string"} for number in range(1000)}, "required": ["p999"]}},
]  # fmt: skip

LISTS: dict[str, dict[str, Any]] = {
    "prompts/list": {
        "prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}]
    },
    "resources/list": {"resources": [{"uri": "note://first", "name": "first"}]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "note://{name}{?part}", "name": "note"}]
    },
}

heard: list[Any] = []


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(words: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": failed}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    name = params.get("name")
    if method == "initialize":
        offer: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}
        info = {"name": "forms", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": offer, "serverInfo": info}
    if method == "tools/list":  # Two pages.
        return {"tools": TOOLS[3:]} if params.get("cursor") else {"tools": TOOLS[:3], "nextCursor": "2"}
    if method in LISTS:
        return LISTS[method]
    if method == "prompts/get":
        return {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": json.dumps(params["arguments"])}}
            ]
        }
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": f"the note {params['uri']}"}]}
    if name == "fail":
        return text("it fails", failed=True)
    return text(json.dumps(heard if name == "heard" else params.get("arguments")))


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, params, number = message.get("method", ""), message.get("params") or {}, message.get("id")
        if method == "notifications/cancelled":
            heard.append(params.get("requestId"))
        elif number is None:
            continue
        elif params.get("name") == "slow":
            token = params.get("_meta", {}).get("progressToken")
            if token is not None:
                progress = {"progressToken": token, "progress": 1, "total": 3, "message": "waiting"}
                say(method="notifications/progress", params=progress)
        elif method == "server/discover":
            say(id=number, error={"code": -32601, "message": "unknown"})
        else:
            say(id=number, result=answer(method, params))


if __name__ == "__main__":
    main()
