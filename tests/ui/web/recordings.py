"""Recordings that the tests of the web page write: single sessions, and the run of an agent with three servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"

HOST = {"pid": 4242, "program": "claude", "started": "2026-11-26T20:00:00.000Z"}

RUN = {
    "everything": ("everything-sdk-auto", "2026-11-26T20:00:01.000Z"),
    "files": ("filesystem-sdk-legacy", "2026-11-26T20:00:01.400Z"),
    "memory": ("memory-sdk-auto", "2026-11-26T20:00:02.000Z"),
}
"""Name of a session of the run → the real recording that it is a copy of, and its start."""


def write(path: Path, entries: list[dict[str, object]], **header: object) -> Path:
    """Write a recording."""
    first = {"mcpspy": 1, "id": path.stem, "started": "2026-11-21T08:28:28.523Z", "transport": "stdio"}
    lines = [{**first, "command": ["server"], "name": path.stem, "redacted": True, **header}, *entries]
    path.write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def write_run(folder: Path, names: Any = tuple(RUN), **header: object) -> None:
    """Write the sessions of one run: real recordings, whose headers name the same process of a host."""
    for name in names:
        source, started = RUN[name]
        first, *rest = (RECORDINGS / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
        fields = {**json.loads(first), "name": name, "started": started, "parent": HOST, **header}
        (folder / f"{name}.jsonl").write_text("\n".join([json.dumps(fields), *rest]) + "\n", encoding="utf-8")


def line(entry: dict[str, object]) -> bytes:
    """Return the line of an entry."""
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def request(at: float, number: int, name: str = "echo") -> dict[str, object]:
    params = {"name": name, "arguments": {"text": f"hello {number}"}}
    msg = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return {"t": at, "from": "client", "msg": msg}


def response(at: float, number: int, text: str = "done") -> dict[str, object]:
    result = {"content": [{"type": "text", "text": text}]}
    return {"t": at, "from": "server", "msg": {"jsonrpc": "2.0", "id": number, "result": result}}


def failure(at: float, number: int) -> dict[str, object]:
    error = {"code": -32000, "message": "no station"}
    return {"t": at, "from": "server", "msg": {"jsonrpc": "2.0", "id": number, "error": error}}
