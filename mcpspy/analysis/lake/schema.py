"""The tables of the lake and their columns, and saved queries about them in DuckDB's SQL.

docs/lake.md is the specification. A new column is the last of its table and raises `VERSION`. A lake keeps its version.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mcpspy.core.session.outcome import FAILED

VERSION = 3
"""Version of the tables. A lake with a higher one is refused."""

TIME = "timestamp"
"""Microseconds since 1970, UTC."""
TEXTS, BYTES = "text[]", "binary"


Row = tuple[Any, ...]
"""The values of a table's columns, in their order. Times are microseconds since 1970."""

UNKNOWN = "unknown"
"""Name of a server that has none."""


class StoredRecording(NamedTuple):
    """Properties of a recording that are not in its session."""

    key: str
    digest: str
    uri: str
    size: int
    """Bytes of all of its files."""
    state: str
    is_redacted: bool


class LakeColumn(NamedTuple):
    name: str
    type: str
    about: str


def _columns(text: str) -> tuple[LakeColumn, ...]:
    """Return the columns of lines `name type meaning`."""
    return tuple(LakeColumn(*line.split(maxsplit=2)) for line in text.strip().splitlines())


PARTITIONS = _columns("""
day     date  UTC day on which the session started
server  text  name of the server: as it introduced itself, else that of the recording
""")
"""Columns in the names of folders: `day=2026-11-23/server=weather`, percent-encoded."""

TABLES: dict[str, tuple[LakeColumn, ...]] = {
    "exchanges": _columns("""
session         text       key of the session
n               int64      number of the exchange in its session, from 0, in the order of the requests
place           int64      place of the request among the session's messages and notes
time            timestamp  when the request was received
stream          text       HTTP: the stream of the request; null on stdio
side            text       sender of the request: client or server
client          text       name and version of the client
method          text       JSON-RPC method
target          text       tool, prompt, resource or other subject of the request
id              text       JSON-RPC id, as JSON
status          text       ok, tool error, error, task failed, cancelled, answered late, no answer, redirected, …
code            int64      JSON-RPC error code
error           text       message of the error, or the first 1,000 characters of a tool error
latency_ms      double     from request to response, or to the end of its task, without the time for which mcpspy held the request
held_ms         double     time for which mcpspy held or delayed the request
request_bytes   int64      size of the request
response_bytes  int64      size of the response; null without one
progress        int64      number of progress notifications
continues       int64      n of the exchange whose question this request answers (2026-07-28)
trace_id        text       trace id of the request's traceparent (W3C Trace Context)
injected        bool       true if mcpspy sent the request itself
issues          text[]     protocol issues of the request and the response
effects         text[]     what rules and viewers of mcpspy did to the messages
request         text       the request, verbatim; null if it is not UTF-8
response        text       the response, verbatim; null without one, or if it is not UTF-8
request_raw     binary     the request, if it is not UTF-8
response_raw    binary     the response, if it is not UTF-8
compact         bool       true if the request and the response are compact JSON, and every JSON parser reads the same
poll_of         int64      n of the call whose task this request is about
"""),
    "messages": _columns("""
session      text       key of the session
place        int64      place among the session's messages and notes, from 0: the order on the wire
time         timestamp  when the message was received
stream       text       HTTP: its stream; null on stdio
side         text       sender: client or server
kind         text       notification, request, result, error or malformed
method       text       method, or that of the answered request
target       text       subject of the message, or of the answered request
id           text       JSON-RPC id of a response, as JSON
n            int64      exchange that the message is about (progress, cancellation, late response)
bytes        int64      size of the message
issues       text[]     protocol issues
message      text       the message, verbatim; null if it is not UTF-8
message_raw  binary     the message, if it is not UTF-8
compact      bool       true if the message is compact JSON, and every JSON parser reads the same
"""),
    "tools": _columns("""
session     text       key of the session
n           int64      exchange whose result listed the tool
time        timestamp  when the result was received
client      text       name and version of the client
name        text       name of the tool
digest      text       SHA-256 of the definition as canonical JSON; null: the tool is no longer listed
definition  text       the definition as compact JSON
bytes       int64      size of name, description and input schema, as a host sends them to a model
tokens      int64      tokens of the same text (docs/stats.md)
"""),
    "findings": _columns("""
session   text       key of the session
place     int64      place of the message or note
n         int64      exchange of the message
time      timestamp  when it was received
line      int64      line of the recording's file; the header is line 1
part      int64      number of the recording's file, from 1
code      text       code of the lint rule (docs/lint.md)
severity  text       error, warning or info
side      text       sender of the message; null for a note
about     text       method and subject of the message, or kind of the note
message   text       the violation in one line
excerpt   text       the offending part
"""),
    "notes": _columns("""
session  text       key of the session
place    int64      place among the session's messages and notes
time     timestamp  when it happened; null for a damaged line
kind     text       stderr, exit, http, rule, lost, … (docs/format.md); damaged: a line that is not an entry
text     text       the note in words
fields   text       the fields of the note, as JSON
"""),
    "sessions": _columns("""
session         text       key of the session in all tables: its id and the start of its digest
id              text       id of the session, as in mcpspy ls
digest          text       SHA-256 of the recording's files; keyed if the recording was not redacted
uri             text       the recording: file://HOST/PATH
bytes           int64      size of the recording's files
name            text       name of the session
transport       text       stdio or http
command         text       command or URL of the server, redacted
client          text       name of the client; the first one if there are several
client_version  text       its version
server_version  text       version of the server
revision        text       protocol revision that both sides accepted
started         timestamp  start of the session
ended           timestamp  time of the last entry
state           text       ended, or died: mcpspy was killed before the end
exit_code       int64      exit code of the server
exit_signal     text       signal that ended the server
redacted        bool       true if secrets were redacted when the session was recorded or added
total_messages  int64      number of messages of both sides
errors          int64      number of failed requests, and errors that settle no request
unanswered      int64      number of requests without an outcome at the end
exchanges       int64      number of rows in the table exchanges
messages        int64      number of rows in the table messages
tools           int64      number of rows in the table tools
findings        int64      number of rows in the table findings
notes           int64      number of rows in the table notes
"""),
}
"""Table → columns. `sessions` is last: its row guarantees all other rows of the session."""

COMPACT = "compact"

ADDED = {COMPACT: (2, "false"), "poll_of": (3, "NULL::BIGINT")}
"""Column that older lakes lack → the version that added it, and the value that older rows are read with, in SQL."""

UNCOUNTED = "(injected OR poll_of IS NOT NULL)"
"""Condition of the exchanges whose outcome counts nowhere."""

DETAILS = tuple(table for table in TABLES if table != "sessions")
"""The tables whose rows a session counts."""


def columns_of(table: str, version: int) -> tuple[LakeColumn, ...]:
    """Return the columns of a table in a lake of this version."""
    return tuple(column for column in TABLES[table] if version >= ADDED.get(column.name, (1, ""))[0])


class SavedQuery(NamedTuple):
    about: str
    sql: str


_FAILED = f"NOT {UNCOUNTED} AND status IN (" + ", ".join(sorted(f"'{state}'" for state in FAILED)) + ")"
_CALLS = "method = 'tools/call' AND NOT injected AND continues IS NULL"

QUERIES = {
    "top-tools": SavedQuery(
        "the most called tools, with errors and latency",
        f"""SELECT server, target AS tool, count(*) AS calls, count(*) FILTER ({_FAILED}) AS errors,
  round(median(latency_ms), 1) AS p50_ms, round(quantile_cont(latency_ms, 0.95), 1) AS p95_ms,
  sum(response_bytes)::BIGINT AS response_bytes
FROM exchanges WHERE {_CALLS}
GROUP BY ALL ORDER BY calls DESC, server, tool LIMIT 50""",
    ),
    "slowest": SavedQuery(
        "the slowest requests",
        """SELECT latency_ms, time, server, method, target, status, session, n
FROM exchanges WHERE latency_ms IS NOT NULL ORDER BY latency_ms DESC, session, n LIMIT 50""",
    ),
    "errors": SavedQuery(
        "errors by server, tool and text",
        f"""SELECT count(*) AS errors, server, method, target, status, code, left(error, 120) AS error,
  max(time) AS latest
FROM exchanges WHERE {_FAILED}
GROUP BY ALL ORDER BY errors DESC, server, method, target, code, error LIMIT 50""",
    ),
    "drift": SavedQuery(
        "the definitions of each tool by time (mcpspy drift compares them)",
        """SELECT server, name AS tool, digest[:12] AS definition, min(time) AS first, max(time) AS latest,
  count(DISTINCT session) AS sessions, max(bytes) AS bytes, max(tokens) AS tokens
FROM tools WHERE digest IS NOT NULL
GROUP BY ALL ORDER BY server, tool, first, definition""",
    ),
    "unused-tools": SavedQuery(
        "tools that were listed and never called, the largest first",
        f"""SELECT server, name AS tool, count(DISTINCT session) AS sessions, max(tokens) AS tokens
FROM tools WHERE digest IS NOT NULL
  AND (server, name) NOT IN (SELECT (server, target) FROM exchanges WHERE target IS NOT NULL AND {_CALLS})
GROUP BY ALL ORDER BY tokens DESC, server, tool""",
    ),
    "context": SavedQuery(
        "tokens of the tool definitions of each server, in its latest session with a list",
        """SELECT server, max_by(tools, started) AS tools, max_by(tokens, started) AS tokens,
  max_by(bytes, started) AS bytes, count(*) AS sessions
FROM (SELECT t.server, t.session, s.started, count(*) AS tools, sum(t.tokens)::BIGINT AS tokens,
    sum(t.bytes)::BIGINT AS bytes
  FROM (FROM tools SELECT * QUALIFY row_number() OVER (PARTITION BY session, name ORDER BY time DESC, n DESC) = 1) t
  JOIN sessions s USING (session) WHERE t.digest IS NOT NULL GROUP BY ALL)
GROUP BY server ORDER BY tokens DESC, server""",
    ),
    "agents": SavedQuery(
        "clients: their sessions, servers, calls and errors",
        f"""SELECT client, count(DISTINCT session) AS sessions, count(DISTINCT server) AS servers,
  count(*) FILTER ({_CALLS}) AS calls, count(*) FILTER ({_FAILED}) AS errors, min(time) AS first, max(time) AS latest
FROM exchanges WHERE side = 'client' AND NOT injected
GROUP BY ALL ORDER BY calls DESC, client""",
    ),
}
