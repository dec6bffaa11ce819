"""The filter language on one page, for the help of the terminal UI and docs/filter.md."""

from __future__ import annotations

from mcpspy.core.query.fields import KIND_GROUPS, SLOW, STATUSES
from mcpspy.core.query.sessions import STATES

SYNTAX: tuple[tuple[str, str], ...] = (
    ("forecast", "a method, tool, uri … contains it; also stderr"),
    ("read_*", "the whole name; * is any text, ? one character"),
    ('"a b"', "exactly this text, without special characters"),
    ("tool:echo", "also method: prompt: uri: target: id: stream:"),
    ("method=tools/call", "exactly this; != the others; method:* any method"),
    ("text:needle", "bytes contain it; /regex/i: they match; i ignores case"),
    ("from:client", "the sender; also from:server"),
    ("kind:request", f"also notification, result, error, {', '.join(KIND_GROUPS)} …"),
    ("status:error", f"also {', '.join(name for name in STATUSES if name != 'error')}"),
    ("is:slow", f"over {SLOW:g} s; also is:issue, is:finding, a status, a kind"),
    ("lint:ENV", "findings by code; also lint:error, warning, info"),
    (">200ms <10kb", "latency, size; also latency>1s size>1m code:-32602"),
    ("since:-5m", "the last 5 minutes; also until:30s time>10s"),
    ("params.name:*.txt", "also result.isError:true, error.code>5, null, :* anything"),
    ("a b", "both; a or b, a|b: one of them"),
    ("-a", "not a; parentheses group: -(a or b)"),
)
"""Filter → meaning. docs/filter.md explains the whole language."""

SESSION_SYNTAX: tuple[tuple[str, str], ...] = (
    ("weather", "a name, server, client, revision, command or URL contains it, or the id begins with it"),
    ('"a b"', "exactly this text, without special characters"),
    ("name:weather", "also server: client: revision: id:"),
    ("name:*-dev", "the whole name; * is any text, ? one character"),
    ("state:live", f"also {', '.join(STATES[1:])}"),
    ("errors>0", "also issues, unanswered, pending, messages"),
    ("is:problem", "errors, unanswered requests, protocol issues or a crash"),
    ("size>10mb", "the size of the recording"),
    ("since:2h", "started in the last two hours; also since:2026-11-20, until:7d"),
    ("a b", "both; a or b, a|b: one of them"),
    ("-a", "not a; parentheses group: -(a or b)"),
)
"""The same for filters of sessions (docs/ls.md)."""
