"""Many recordings of several servers, days, clients and revisions, whose tools change. The same on every run.

python bench/many_sessions.py FOLDER SESSIONS MESSAGES     writes about MESSAGES messages in SESSIONS recordings
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

SERVERS = ("weather", "files/local", "issues", "datenbank-größe")
CLIENTS = ("desktop 1.4", "editor 0.9", "agent 2.1")
DAYS = 30
MODERN = "2026-07-28"
TEXT = "lorem ipsum dolor sit amet, consectetur "


def write_sessions(folder: Path, sessions: int, messages: int) -> None:
    """Write the recordings `session-0001.jsonl` … with a name, an id and a day each."""
    folder.mkdir(parents=True, exist_ok=True)
    calls = max(messages // sessions // 2 - 3, 1)
    for number in range(sessions):
        (folder / f"session-{number:05}.jsonl").write_bytes(b"".join(_lines(number, sessions, calls)))


def tools_of(server: str, version: int) -> list[dict[str, Any]]:
    """Return the tools of a server; from version 2 on `search` requires a limit, and in version 3 `sum` is gone."""
    search: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    if version >= 2:
        search["properties"]["limit"], search["required"] = {"type": "integer"}, ["limit"]
    names = ("search", "read", "write", *(("sum",) if version < 3 else ()))
    return [
        {
            "name": name,
            "description": f"Use {name} of {server}.",
            "inputSchema": search if name == "search" else {"type": "object"},
        }
        for name in names
    ]


def _lines(number: int, sessions: int, calls: int) -> list[bytes]:
    chance = random.Random(number)
    server = SERVERS[number % len(SERVERS)]
    client, client_version = chance.choice(CLIENTS).split()
    day = 1 + number * DAYS // sessions
    version = 1 + (day > DAYS // 3) + (day > 2 * DAYS // 3)
    is_modern = chance.random() < 0.3
    revision = MODERN if is_modern else "2025-06-18"
    info = {"name": client, "version": client_version}
    served = {"name": server, "version": f"{version}.0"}
    key = "io.modelcontextprotocol/"
    meta = {f"{key}protocolVersion": revision, f"{key}clientInfo": info, f"{key}clientCapabilities": {}}
    header = {
        "mcpspy": 1,
        "id": f"{number:08x}",
        "started": f"2026-10-{day:02}T{number % 24:02}:00:00.000Z",
        "transport": "stdio",
        "command": [server],
        "name": server,
        "redacted": True,
    }
    lines = [_json(header) + b"\n"]
    at = 0.0

    def message(side: str, body: dict[str, Any]) -> None:
        nonlocal at
        at += 0.001 + chance.random() / 50
        lines.append(
            b'{"t":%.6f,"from":"%b","msg":%b}\n' % (at, side.encode(), _json({"jsonrpc": "2.0", **body}))
        )

    def request(id_number: int, method: str, params: dict[str, Any]) -> None:
        params = {"_meta": meta, **params} if is_modern else params
        message("client", {"id": id_number, "method": method, "params": params})

    def result(id_number: int, value: dict[str, Any]) -> None:
        extra = {"resultType": "complete", "_meta": {f"{key}serverInfo": served}} if is_modern else {}
        message("server", {"id": id_number, "result": {**value, **extra}})

    if not is_modern:
        request(1, "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": info})
        result(1, {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": served})
        message("client", {"method": "notifications/initialized"})
    request(2, "tools/list", {})
    result(
        2, {"tools": tools_of(server, version), **({"ttlMs": 0, "cacheScope": "public"} if is_modern else {})}
    )
    for call in range(3, calls + 3):
        tool = chance.choice(("search", "search", "read", "write"))
        arguments = {"text": f"{call}", **({"limit": 5} if chance.random() < 0.5 else {})}
        request(call, "tools/call", {"name": tool, "arguments": arguments})
        luck = chance.random()
        if luck < 0.002:
            continue  # It stays unanswered.
        if luck < 0.01:
            message("server", {"id": call, "error": {"code": -32602, "message": "no such place"}})
        elif tool == "search" and version >= 2 and "limit" not in arguments:
            result(call, {"content": [{"type": "text", "text": "limit is required"}], "isError": True})
        else:
            result(call, {"content": [{"type": "text", "text": TEXT * chance.randrange(1, 20)}]})
        if luck > 0.99:
            message("server", {"method": "notifications/message", "params": {"level": "info", "data": "ok"}})
    lines.append(b'{"t":%.6f,"note":"stderr","text":"stopping"}\n' % at)
    lines.append(b'{"t":%.6f,"note":"exit","code":0}\n' % at)
    return lines


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


if __name__ == "__main__":
    write_sessions(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
