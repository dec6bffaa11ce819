"""Tables of the protocol: revisions, methods, error codes.

The tables cover the five revisions of the Model Context Protocol, from their schemas
(modelcontextprotocol.io/specification/REVISION/schema), the known extensions (`core.protocol.extensions`), and the
error codes of JSON-RPC 2.0. Unknown methods are allowed (other extensions, experiments), so look-ups of unknown names
return None.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.protocol.extensions import EXTENSION_METHODS
from mcpspy.core.protocol.extensions.extension import FINAL

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""All revisions, the oldest first; they sort as text."""

MODERN = "2026-07-28"
"""First revision without a handshake: every request has its version in `params._meta`."""

CLIENT, SERVER, EITHER = "client", "server", "either"
REQUEST, NOTIFICATION = "request", "notification"

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Levels of log messages, the least severe first (RFC 5424)."""


class Method(NamedTuple):
    name: str
    sender: str
    """`client`, `server` or `either`."""
    since: str = REVISIONS[0]
    until: str | None = None
    """Last revision that has the method; None if the latest revision has it."""
    needs: str | None = None
    """Required capability of the receiver, as a dotted path; None if none is required."""
    subject: str | None = None
    """Parameter that identifies the target: the name of a tool, the URI of a resource."""
    extension: str | None = None
    """Id of the extension that has it; None if the core has it, also in another revision."""

    @property
    def kind(self) -> str:
        """`request` or `notification`."""
        return NOTIFICATION if self.name.startswith("notifications/") else REQUEST


_LEGACY = "2025-11-25"

METHODS = {
    method.name: method
    for method in (
        Method("initialize", CLIENT, until=_LEGACY),
        Method("ping", EITHER, until=_LEGACY),
        Method("server/discover", CLIENT, since=MODERN),
        Method("tools/list", CLIENT, needs="tools", subject="cursor"),
        Method("tools/call", CLIENT, needs="tools", subject="name"),
        Method("resources/list", CLIENT, needs="resources", subject="cursor"),
        Method("resources/templates/list", CLIENT, needs="resources", subject="cursor"),
        Method("resources/read", CLIENT, needs="resources", subject="uri"),
        Method("resources/subscribe", CLIENT, until=_LEGACY, needs="resources.subscribe", subject="uri"),
        Method("resources/unsubscribe", CLIENT, until=_LEGACY, needs="resources.subscribe", subject="uri"),
        Method("prompts/list", CLIENT, needs="prompts", subject="cursor"),
        Method("prompts/get", CLIENT, needs="prompts", subject="name"),
        Method("completion/complete", CLIENT, needs="completions", subject="ref"),
        Method("logging/setLevel", CLIENT, until=_LEGACY, needs="logging", subject="level"),
        Method("subscriptions/listen", CLIENT, since=MODERN),
        # Tasks are part of the core in 2025-11-25, for both sides, and an extension in 2026-07-28, for the client.
        Method("tasks/get", EITHER, since=_LEGACY, needs="tasks", subject="taskId"),
        Method("tasks/result", EITHER, since=_LEGACY, until=_LEGACY, needs="tasks", subject="taskId"),
        Method("tasks/list", EITHER, since=_LEGACY, until=_LEGACY, needs="tasks.list", subject="cursor"),
        Method("tasks/cancel", EITHER, since=_LEGACY, needs="tasks.cancel", subject="taskId"),
        # From 2026-07-28 on, these three methods occur inside `input_required` results.
        Method("sampling/createMessage", SERVER, until=_LEGACY, needs="sampling"),
        Method("roots/list", SERVER, until=_LEGACY, needs="roots"),
        Method(
            "elicitation/create",
            SERVER,
            since="2025-06-18",
            until=_LEGACY,
            needs="elicitation",
            subject="message",
        ),
        Method("notifications/initialized", CLIENT, until=_LEGACY),
        Method("notifications/cancelled", EITHER, subject="requestId"),
        Method("notifications/progress", EITHER, subject="progressToken"),
        Method("notifications/message", SERVER, subject="level"),
        Method("notifications/tools/list_changed", SERVER),
        Method("notifications/prompts/list_changed", SERVER),
        Method("notifications/resources/list_changed", SERVER),
        Method("notifications/resources/updated", SERVER, subject="uri"),
        Method("notifications/roots/list_changed", CLIENT, until=_LEGACY),
        Method("notifications/tasks/status", EITHER, since=_LEGACY, until=_LEGACY, subject="taskId"),
        Method(
            "notifications/elicitation/complete",
            SERVER,
            since=_LEGACY,
            until=_LEGACY,
            subject="elicitationId",
        ),
        Method("notifications/subscriptions/acknowledged", SERVER, since=MODERN),
    )
}

SERVER_CAPABILITIES = frozenset(
    method.needs.partition(".")[0] for method in METHODS.values() if method.needs and method.sender != SERVER
)
"""Capabilities that a server declares for the methods of the core."""

METHODS |= {
    name: Method(
        name, method.sender, method.since or REVISIONS[0], subject=method.subject, extension=extension.id
    )
    for name, (extension, method) in EXTENSION_METHODS.items()
    if name not in METHODS
    and extension.state == FINAL  # Servers have their own methods with the names of drafts.
}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
RESOURCE_NOT_FOUND, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32002, -32020, -32021, -32022
URL_NEEDED = -32042

ERRORS = {
    PARSE_ERROR: "parse error",
    INVALID_REQUEST: "invalid request",
    METHOD_NOT_FOUND: "method not found",
    INVALID_PARAMS: "invalid params",
    INTERNAL_ERROR: "internal error",
    RESOURCE_NOT_FOUND: "resource not found",
    HEADER_MISMATCH: "header mismatch",
    MISSING_CAPABILITY: "missing required client capability",
    UNSUPPORTED_VERSION: "unsupported protocol version",
    URL_NEEDED: "url elicitation required",
    -32800: "request cancelled",
    -32801: "content modified",
}
"""Error codes with a fixed meaning; the last two are those of the Language Server Protocol, which SDKs send.

Sources: JSON-RPC 2.0, 5.1; basic#error-codes (2026-07-28); server/resources#error-handling (until 2025-11-25).
"""

SERVER_ERRORS = range(-32099, -31999)
"""Codes for errors that the server defines (JSON-RPC 2.0, 5.1). SDKs use -32000 to -32019 with meanings that differ."""

META = "io.modelcontextprotocol/"
"""Prefix of the keys in `_meta` that the protocol defines, from 2026-07-28 on."""


def error_name(code: int | None) -> str | None:
    """Return the name of an error code; None if its meaning is the application's."""
    return ERRORS.get(code, "server error" if code in SERVER_ERRORS else None) if code is not None else None


def other(side: str) -> str:
    return SERVER if side == CLIENT else CLIENT


def is_known(method: str, revision: str) -> bool:
    """Return True if this revision has the method, or a known extension that may be used with it."""
    entry = METHODS.get(method)
    return entry is not None and entry.since <= revision and (entry.until is None or revision <= entry.until)


def era(revision: str) -> str:
    """Return the revision whose rules hold for a request that names `revision` in its `_meta`.

    Requests do so since 2026-07-28 only: an earlier revision there is one that the server may refuse.
    """
    return max(revision, MODERN)
