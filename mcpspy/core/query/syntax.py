"""The filter language on one page, for the help of the terminal UI and docs/filter.md."""

from __future__ import annotations

from mcpspy.core.query.fields import KIND_GROUPS, SLOW, STATUSES

SYNTAX: tuple[tuple[str, str], ...] = (
    ("forecast", "a method, tool, uri … that contains it; stderr: lines of stderr"),
    ("read_*", "the whole method, tool, uri …: * is any text, ? one character"),
    ("tool:echo", "also method: prompt: uri: target: id: stream: note:"),
    ("method=tools/call", "exactly this text; != everything else; method:* any"),
    ('"a b"', "exactly this text: nothing in it has a special meaning"),
    ("text:needle", "messages whose bytes contain it"),
    ("/regex/i", "messages whose bytes match it; i ignores case"),
    ("from:client", "the sender; also from:server"),
    ("status:error", f"also {', '.join(name for name in STATUSES if name != 'error')}, or a code"),
    ("is:slow", f"more than {SLOW:g} s; also is:issue, is:finding, any status or kind"),
    ("kind:request", f"also notification, result, error, {', '.join(KIND_GROUPS)}, malformed …"),
    ("lint:ENV", "lint findings by code, or by error, warning, info"),
    (">200ms <10kb", "latency and size; also latency>1s size>1m code:-32602"),
    ("since:-5m", "the last 5 minutes; also until:30s time>10s"),
    ("params.name:*.txt", "a value in the message, from params, result or error"),
    ("result.isError:true", "true, false, null, a number (params.n>5) or * for any"),
    ("a b, a and b", "both; a or b, a|b: one of them"),
    ("-a, not a", "not this; parentheses group: -(a or b)"),
)
"""Example → meaning. docs/filter.md explains all of them."""
