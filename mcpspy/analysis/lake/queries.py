"""Saved queries: questions about the lake by name, in DuckDB's SQL."""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.analysis.lake.schema import UNCOUNTED
from mcpspy.core.session.outcome import FAILED


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
