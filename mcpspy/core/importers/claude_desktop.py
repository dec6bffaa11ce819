"""Importer of the logs of Claude Desktop: `mcp-server-NAME.log` and `mcp.log`.

A record is `TIME [NAME] [LEVEL] TEXT` in the log of a server, and `TIME [LEVEL] [NAME] TEXT` in `mcp.log`. The log of a
server also contains its stderr. Objects are in the notation of Node's `util.inspect`, over several lines. Sources:
modelcontextprotocol/typescript-sdk issue 179, modelcontextprotocol/go-sdk issue 395, sjzar/chatlog issue 166,
stabgan/openrouter-mcp-multimodal issue 5.
"""

from __future__ import annotations

import re

from mcpspy.core.importers.base import ImportedSession, timestamp
from mcpspy.core.importers.logs import LACKS, LogSession, imported, records
from mcpspy.core.recording.encode import CLIENT, SERVER

NAME = "claude-desktop"

_RECORD = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) \[([^\]]*)\] (?:\[([^\]]*)\] )?(.*)", re.ASCII | re.DOTALL
)

_LEVELS = (b"error", b"warn", b"info", b"verbose", b"debug", b"silly")

_SIDES = ((b"Message from client: ", CLIENT), (b"Message from server: ", SERVER))

_NO_METADATA = b"{ metadata: undefined }"

_ENDS = (b"Server transport closed", b"Server disconnected", b"Shutting down server")

_TIMEOUT = b"-32001"
"""The code of the SDK's own timeout, 60 s in Claude Desktop (anthropics/claude-code issue 22542)."""

_REASON = "the reason for the end of a session (a server that the host ends looks like one that exits)"

_COMMAND = b"Using MCP server command: "

_UNREAD = re.compile(
    rb"""Unexpected (?:token|end)[^"\n]{0,80}"([^\n]{1,200}?)"(?:\.\.\.)? is not valid JSON"""
    rb"|Unexpected token (\S) in JSON at position"
)
"""The error of `JSON.parse` of a line that the server wrote to stdout: V8 quotes its beginning, older ones one character."""

_QUOTED = re.compile(
    rb"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`),\s*""", re.DOTALL
)


def sessions(data: bytes) -> list[ImportedSession]:
    """Return a session for each start of a server; raise UsageError."""
    found: list[LogSession] = []
    is_shared = False
    running: dict[bytes, LogSession] = {}
    for number, match, more in records(data, _RECORD):
        at = timestamp(match[1].decode(), f"{NAME} line {number}")
        is_shared = match[2] in _LEVELS
        name, (text, others) = match[3] if is_shared else match[2], _with_object(match[4], more)
        if not name:
            continue
        session, is_start = running.get(name), text.startswith(b"Initializing server")
        if session is None or (is_start and not session.is_empty):
            if session is not None:
                session.is_ended = True
            session = running[name] = LogSession(name.decode("utf-8", "replace"), is_start=is_start)
            found.append(session)
        side = next((side for prefix, side in _SIDES if text.startswith(prefix)), None)
        if side is not None:
            body = text.partition(b": ")[2].rstrip().removesuffix(_NO_METADATA)
            session.message(at, side, body)
            if side == CLIENT and b"notifications/cancelled" in body and _TIMEOUT in body:
                session.timed_out_at = at
        elif unread := _UNREAD.match(text):
            session.message(at, SERVER, unread[1] or unread[2])
        elif b"error" in (match[2] if is_shared else match[3] or b""):
            session.errors.append(_first_line(text))
        else:
            session.host_records += 1
        if command := _command(text):
            session.command = command
        session.end(at, is_end=text.startswith(_ENDS))
        if is_shared:
            session.left_out += len(others)
            continue
        for line in others:
            session.stderr(at, line)
    lacks = [*LACKS, _REASON] + ["the server's stderr, which is in mcp-server-NAME.log"] * is_shared
    return imported(found, NAME, lacks)


def _first_line(text: bytes) -> str:
    """Return the text of an error without its object and its documentation."""
    line = text.partition(b" {")[0].partition(b". For troubleshooting")[0]
    return line.strip().decode("utf-8", "replace")


def _with_object(text: bytes, more: list[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the text of a record with the lines of the object that it ends with, and the other lines."""
    if text.endswith(b"{"):
        for count, line in enumerate(more, 1):
            if line.startswith(b"}"):
                return b"\n".join([text, *more[:count]]), more[count:]
    return text, more


def _command(text: bytes) -> list[str] | None:
    """Return the command; None if there is none, or if its arguments are not complete."""
    if not text.startswith(_COMMAND):
        return None
    program, _, described = text.removeprefix(_COMMAND).partition(b" with args and path:")
    listed, _, length = described.partition(b"args: [")[2].partition(b"[length]: ")
    quoted = [next(filter(None, each.groups()), b"") for each in _QUOTED.finditer(listed)]
    if _QUOTED.sub(b"", listed).strip() or length.split()[:1] != [b"%d" % len(quoted)]:
        return None
    words = (program, *(re.sub(rb"\\(.)", rb"\1", word) for word in quoted))
    return [word.decode("utf-8", "replace") for word in words]
