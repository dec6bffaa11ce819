"""Importer of the output of VS Code's MCP servers, at the log level Debug or Trace.

A record is `TIME [LEVEL] TEXT`, in local time. Sources: microsoft/vscode issue 244377 (`[Client Says]`, March 2025),
rsclarke/mcp-taskfile-server issue 134 (1.129), and microsoft/vscode, `mcpServerRequestHandler.ts`, `mainThreadMcp.ts`.
"""

from __future__ import annotations

import re

import msgspec

from mcpspy.core.importers.base import ImportedSession, timestamp
from mcpspy.core.importers.logs import LACKS, LogSession, imported, records
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

NAME = "vscode"

_RECORD = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \[[a-z]+\] (.*)", re.ASCII | re.DOTALL)

_SIDES = {
    b"[editor -> server] ": CLIENT,
    b"[server -> editor] ": SERVER,
    b"[Client Says] ": CLIENT,
    b"[Server Says] ": SERVER,
}

_PREFIX = re.compile(b"|".join(map(re.escape, _SIDES)))

_STARTS = re.compile(rb"Starting server(?: from \w+ extension host| (.+))?|Connection state: Starting")

_COMMAND = b"Server command line: "

_STDERR = b"[server stderr] "

_UNPARSED = b"Failed to parse message: "

_ENDS = (b"Connection state: Stopped", b"Connection state: Error")

_LACKS = [
    *LACKS,
    "the time zone (UTC is assumed)",
    "the transport, the server's URL and HTTP headers (stdio is assumed)",
    "quotes in the server's command (it is split at blanks)",
]


def sessions(data: bytes) -> list[ImportedSession]:
    """Return a session for each start of a server; raise UsageError."""
    found: list[LogSession] = []
    for number, match, more in records(data, _RECORD):
        at, text = timestamp(match[1].decode(), f"{NAME} line {number}"), match[2]
        start = _STARTS.fullmatch(text)
        if not found or (start and not found[-1].is_empty):
            if found:
                found[-1].is_ended = True
            found.append(LogSession("", is_start=start is not None))
        session = found[-1]
        if start is not None and start[1]:
            session.name = start[1].decode("utf-8", "replace")
        elif said := _PREFIX.match(text):
            session.message(at, _SIDES[said[0]], text[said.end() :])
        elif text.startswith(_UNPARSED):
            session.message(at, SERVER, _unquoted(text.removeprefix(_UNPARSED)))
        elif text.startswith(_COMMAND):
            session.command = text.removeprefix(_COMMAND).decode("utf-8", "replace").split()
        elif text.startswith(_STDERR):
            for line in (text.removeprefix(_STDERR), *more):
                session.stderr(at, line)
            continue
        else:
            session.host_records += 1
        session.end(at, is_end=text.startswith(_ENDS))
        session.left_out += len(more)
    if not any(session.messages for session in found):
        raise UsageError(
            "log without messages", "set the log level of the server's output to Trace, and start it again"
        )
    return imported(found, NAME, _LACKS)


def _unquoted(text: bytes) -> bytes:
    """Return the line of the server that VS Code could not parse, which it writes as a JSON string."""
    try:
        return msgspec.json.decode(text, type=str).encode()
    except (msgspec.DecodeError, UnicodeError):  # Cut by the log.
        return text
