"""What mcp-rec writes: a line a message, `{"ts":…,"dir":"client->server","msg":…}` (0.1).

Owns the reading of it. It appends to a file that exists, so one may hold
several sessions, and nothing in it says where the next begins.
"""

from __future__ import annotations

import json
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.importers.base import ImportedSession, RecordingLines, read_lines
from mcpspy.core.recording.encode import CLIENT, SERVER

NAME = "mcp-rec"

LACKS = [
    "the server's command, its stderr and how it left",
    "the messages' own spelling (it wrote them again)",
]


class _Line(Struct):
    ts: float
    dir: Literal["client->server", "server->client"]
    msg: Raw


class _Unparsed(Struct):
    """A line that was no JSON."""

    raw: str = msgspec.field(name="_raw")
    unparsed: Literal[True] = msgspec.field(name="_unparsed")


_unparsed = msgspec.json.Decoder(_Unparsed).decode


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the file; raise UsageError."""
    lines = RecordingLines()
    begun = 0
    for _, line in read_lines(data, _Line, NAME, _python_json):
        said = _said(line.msg)
        begun += b'"method": "initialize"' in said[:200]
        lines.message(line.ts, CLIENT if line.dir == "client->server" else SERVER, said)
    lines.ended()
    started, made = lines.done()
    changed = [f"{begun} sessions that went into one file, one after the other, are one recording"]
    return [
        ImportedSession(
            format=NAME,
            key="",
            name="",
            transport="stdio",
            started=started,
            lines=made,
            messages=lines.messages,
            lacks=LACKS,
            changed=changed if begun > 1 else [],
        )
    ]


def _said(msg: Raw) -> bytes:
    data = bytes(msg)
    if b'"_unparsed"' in data:
        try:
            return _unparsed(data).raw.encode("utf-8", "replace")
        except msgspec.DecodeError:  # A message that says such a thing itself.
            pass
    return data


def _python_json(line: bytes) -> _Line:
    """Return a line with what Python's `json` takes from a server, and writes: NaN, which is no JSON."""
    entry = json.loads(line)
    if not isinstance(entry, dict) or "msg" not in entry:
        raise ValueError
    msg = json.dumps(entry["msg"]).encode()
    return msgspec.convert({**entry, "msg": Raw(msg)}, _Line)
