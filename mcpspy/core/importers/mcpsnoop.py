"""Importer of mcpsnoop sessions (0.16): one event per line, in `sessions/ID.jsonl` of its folder.

Each line is an envelope (`internal/proxy/frame.go`). A file has one session; in concatenated files, `session_id`
distinguishes the sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, compact, read_lines, timestamp
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

NAME = "mcpsnoop"

SIDES = {"c2s": CLIENT, "s2c": SERVER}

LACKS = ["the server's exit status"]

LACKS_HTTP = [
    "HTTP status, headers, paths and sessions, and the exchange of each message (a connection is one stream)"
]


class _Envelope(Struct):
    session_id: str
    seq: int
    ts: str
    direction: str
    server_label: str = ""
    transport: str = "stdio"
    raw: Raw = Raw(b"")
    text: str = ""
    conn_id: str = ""
    batch: bool = False
    truncated: bool = False
    redacted: bool = False


class _Meta(Struct):
    command: list[str] | None = None
    cwd: str | None = None
    endpoint: str | None = None


class _Session:
    def __init__(self, first: _Envelope) -> None:
        self.first = first
        self.meta = _Meta()
        self.lines = RecordingLines()
        self.streams: dict[str, str] = {}
        self.truncated = self.redacted = self.batched = self.missing = 0
        self._seq: int | None = None

    def add(self, envelope: _Envelope, number: int) -> None:
        at = timestamp(envelope.ts, f"{NAME} line {number}")
        if self._seq is not None:
            self.missing += max(0, envelope.seq - self._seq - 1)
        self._seq = envelope.seq
        self.truncated += envelope.truncated
        self.redacted += envelope.redacted
        self.batched += envelope.batch
        if envelope.direction == "stderr":
            self.lines.stderr(at, envelope.text)
        elif envelope.direction == "meta":
            self.meta = _meta(envelope.raw)
        elif (side := SIDES.get(envelope.direction)) is not None:
            message = compact(envelope.raw) or envelope.text.encode("utf-8", "replace")
            self.lines.message(at, side, message, **self._http_fields(envelope))
        else:
            raise UsageError(
                f"invalid {NAME} line {number}: unknown direction {envelope.direction[:20]!r}",
                "mcpspy reads files of mcpsnoop up to 0.16",
            )

    def imported(self) -> ImportedSession:
        http = self.first.transport != "stdio"
        return self.lines.session(
            format=NAME,
            key=self.first.session_id,
            name=self.first.server_label,
            transport="http" if http else "stdio",
            command=None if http else self.meta.command,
            upstream=self.meta.endpoint if http else None,
            cwd=self.meta.cwd,
            lacks=LACKS + LACKS_HTTP if http else LACKS,
            changed=self._changed(),
        )

    def _http_fields(self, envelope: _Envelope) -> dict[str, Value]:
        if envelope.transport == "stdio":
            return {}
        stream = self.streams.setdefault(envelope.conn_id, str(len(self.streams) + 1))
        return {"stream": stream}

    def _changed(self) -> list[str]:
        changes = (
            ("dropped by mcpsnoop", self.missing, "event"),
            ("truncated by mcpsnoop", self.truncated, "message"),
            ("already redacted in the file", self.redacted, "message"),
            ("split from batches", self.batched, "message"),
        )
        return [f"{change}: {counted(number, noun)}" for change, number, noun in changes if number]


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the sessions of the file; raise UsageError."""
    found: dict[str, _Session] = {}
    for number, envelope in read_lines(data, _Envelope, NAME):
        if envelope.session_id not in found:
            found[envelope.session_id] = _Session(envelope)
        found[envelope.session_id].add(envelope, number)
    return [session.imported() for session in found.values()]


def _meta(raw: Raw) -> _Meta:
    try:
        return msgspec.json.decode(raw, type=_Meta)
    except (msgspec.DecodeError, UnicodeDecodeError):  # An unknown structure; messages do not depend on it.
        return _Meta()
