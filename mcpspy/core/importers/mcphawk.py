"""Importer of mcphawk databases (1.0): SQLite, schema 1, with all sessions.

`io.importing` reads the rows. The tool writes the two directions in two threads, so a response may precede its
request. The rows link responses to requests, and the importer puts them in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, words
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

NAME = "mcphawk"

SCHEMA = 1

MASK = "\u2022\u2022\u2022\u2022"
"""Text with which mcphawk replaces a secret."""

SIDES = {"c2s": CLIENT, "s2c": SERVER}

LACKS = [
    "the server's stderr and exit status",
    "the original bytes of messages (they were parsed and re-encoded)",
    "batches (their messages are separate)",
]

LACKS_HTTP = ["HTTP status, headers, and the exchange of each message (a session is one stream)"]

Row = Mapping[str, Any]

QUERIES = (
    """SELECT id, name, transport, target, server_name, started_at, ended_at
       FROM sessions ORDER BY started_at, id""",
    """SELECT m.session_id, m.id, m.ts, m.direction, m.body, e.request_msg_id AS request
       FROM messages m LEFT JOIN exchanges e ON e.response_msg_id = m.id ORDER BY m.id""",
)
"""Queries for sessions and messages; `request` is the id of the request that a message responds to, or null."""


class McphawkDatabase(NamedTuple):
    """The `user_version` of the file, and the rows that QUERIES return."""

    version: int
    sessions: Sequence[Row]
    messages: Sequence[Row]


def sessions(database: McphawkDatabase) -> list[ImportedSession]:
    """Return the sessions with messages, oldest first; raise UsageError."""
    if database.version != SCHEMA:
        raise UsageError(
            f"unsupported {NAME} schema {database.version}", f"mcpspy reads {SCHEMA}, that of mcphawk 1.0"
        )
    messages: dict[Any, list[Row]] = {}
    for row in database.messages:
        messages.setdefault(row["session_id"], []).append(row)
    return [_session(row, messages[row["id"]]) for row in database.sessions if row["id"] in messages]


def _session(row: Row, rows: list[Row]) -> ImportedSession:
    http = row["transport"] != "stdio"
    lines = RecordingLines()
    ordered, moved = _ordered(rows)
    masked = 0
    for message in ordered:
        side = SIDES.get(message["direction"])
        body = message["body"]
        if side is None or not isinstance(body, str) or not isinstance(message["ts"], int | float):
            raise UsageError(f"invalid {NAME} database: unexpected values in message {message['id']!r}")
        masked += MASK in body
        http_fields: dict[str, Value] = {"stream": "1"} if http else {}
        lines.message(message["ts"], side, body.encode("utf-8", "replace"), **http_fields)
    target = row["target"] if isinstance(row["target"], str) else ""
    changes = [
        f"moved after their requests: {counted(moved, 'response')}" if moved else "",
        f"already masked in the file: {counted(masked, 'message')}" if masked else "",
    ]
    return lines.session(
        is_ended=row["ended_at"] is not None or http,
        format=NAME,
        key=str(row["id"]),
        name=str(row["server_name"] or row["name"] or ""),
        transport="http" if http else "stdio",
        command=words(target) if not http else None,
        upstream=(target or None) if http else None,
        lacks=LACKS + LACKS_HTTP if http else LACKS,
        changed=[line for line in changes if line],
    )


def _ordered(rows: list[Row]) -> tuple[list[Row], int]:
    """Return the messages with each response after its request, and the number of moved responses."""
    early: dict[Any, list[Row]] = {}
    others = []
    for row in rows:
        request = row["request"]
        if isinstance(request, int) and isinstance(row["id"], int) and request > row["id"]:
            early.setdefault(request, []).append(row)
        else:
            others.append(row)
    if not early:
        return rows, 0
    ordered: list[Row] = []
    moved = 0
    for row in others:
        answers = early.pop(row["id"], [])
        moved += len(answers)
        ordered += [row, *answers]
    return [*ordered, *(row for left in early.values() for row in left)], moved
