"""A weather server for MCP on stdio, standard library only (revision 2025-11-25).

A sample for mcpspy: like real servers it responds, reports progress, fails, logs, and prints a debug line to stdout.
Run it with `python -m mcpspy.ui.demo.weather`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

STATIONS = {"Reykjavík": (4, "showers"), "Nairobi": (24, "sunny"), "Oslo": (-2, "snow")}

TOOLS = [
    {
        "name": "forecast",
        "title": "Weather forecast",
        "description": "The weather of the coming days, from three models.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 5},
            },
            "required": ["city"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "stations",
        "title": "Weather stations",
        "description": "The cities that have a station.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
]

PACE = 0.12
"""Seconds per model: long enough for the progress to be visible."""


def main() -> None:
    """Serve until stdin closes."""
    sys.stderr.write(f"weather: {len(STATIONS)} stations online\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            response = answer(message["method"], message.get("params", {}))
            send({"jsonrpc": "2.0", "id": message["id"], **response})
    sys.stderr.write("weather: bye\n")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the `result` or `error` member of the response."""
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": False}, "logging": {}},
                "serverInfo": {"name": "weather", "title": "Weather of the demo", "version": "1.0.0"},
                "instructions": "Ask for the stations first.",
            }
        }
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken"))
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def call(tool: str, arguments: dict[str, Any], token: str | int | None) -> dict[str, Any]:
    if tool == "stations":
        # A common mistake, made on purpose: stdout is reserved for protocol messages.
        write(f"DEBUG: {len(STATIONS)} stations in cache")
        return {"result": {"content": [{"type": "text", "text": ", ".join(STATIONS)}]}}
    if tool != "forecast":
        return {"error": {"code": -32602, "message": f"Unknown tool: {tool}"}}
    city = arguments.get("city")
    if city not in STATIONS:
        text = f"No station in {city}; try one of {', '.join(STATIONS)}"
        log("warning", text)
        return {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
    models = ("arome", "icon", "gfs")
    for done, model in enumerate(models, 1):
        time.sleep(PACE)
        if token is not None:
            progress = {
                "progressToken": token,
                "progress": done,
                "total": len(models),
                "message": f"asked {model}",
            }
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    degrees, sky = STATIONS[city]
    days = [
        {"day": day, "degrees": degrees + day % 2, "sky": sky}
        for day in range(1, arguments.get("days", 3) + 1)
    ]
    text = f"{city}: {degrees} °C, {sky}"
    return {
        "result": {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"city": city, "days": days},
        }
    }


def log(level: str, text: str) -> None:
    params = {"level": level, "logger": "weather", "data": text}
    send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})


def send(message: dict[str, Any]) -> None:
    write(json.dumps(message, ensure_ascii=False, separators=(",", ":")))


def write(line: str) -> None:
    """Write one line of UTF-8 to stdout in any locale."""
    sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
