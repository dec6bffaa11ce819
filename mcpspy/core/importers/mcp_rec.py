"""Importer of mcp-rec files (0.1): one message per line, `{"ts":…,"dir":"client->server","msg":…}`.

The tool appends to existing files, so a file may have several sessions, without a mark where the next one begins.
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
    "the server's command, stderr and exit status",
    "the original bytes of messages (they were parsed and re-encoded)",
]


class _Line(Struct):
    ts: float
    dir: Literal["client->server", "server->client"]
    msg: Raw


class _Unparsed(Struct):
    """A line that was not JSON."""

    raw: str = msgspec.field(name="_raw")
    unparsed: Literal[True] = msgspec.field(name="_unparsed")


_unparsed = msgspec.json.Decoder(_Unparsed).decode


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the file; raise UsageError."""
    lines = RecordingLines()
    initializations = 0
    for _, line in read_lines(data, _Line, NAME, _python_json):
        message = _message_data(line.msg)
        initializations += b'"method": "initialize"' in message[:200]
        lines.message(line.ts, CLIENT if line.dir == "client->server" else SERVER, message)
    changed = [f"{initializations} sessions that were appended to one file became one recording"]
    return [lines.session(format=NAME, lacks=LACKS, changed=changed if initializations > 1 else [])]


def _message_data(msg: Raw) -> bytes:
    data = bytes(msg)
    if b'"_unparsed"' in data:
        try:
            return _unparsed(data).raw.encode("utf-8", "replace")
        except (msgspec.DecodeError, UnicodeDecodeError):  # A message that contains the key itself.
            pass
    return data


def _python_json(line: bytes) -> _Line:
    """Parse a line with NaN, which is not JSON but which Python's `json` reads and writes."""
    entry = json.loads(line)
    if not isinstance(entry, dict) or "msg" not in entry:
        raise ValueError
    msg = json.dumps(entry["msg"]).encode()
    return msgspec.convert({**entry, "msg": Raw(msg)}, _Line)
