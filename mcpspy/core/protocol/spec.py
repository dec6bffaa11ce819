"""The protocol as tables: revisions, methods, error codes.

The five revisions of the Model Context Protocol, from their schemas
(modelcontextprotocol.io/specification/REVISION/schema), and JSON-RPC 2.0's codes. An unknown method is
legal (extensions, experiments), so look-ups of unknown names return None.
"""

from __future__ import annotations

from typing import NamedTuple

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Oldest first. They sort as text."""

MODERN = "2026-07-28"
"""The first revision without a handshake: every request has its version in `params._meta`."""

CLIENT, SERVER, EITHER = "client", "server", "either"
REQUEST, NOTIFICATION = "request", "notification"


class Method(NamedTuple):
    name: str
    sender: str
    """`client`, `server` or `either`."""
    since: str = REVISIONS[0]
    until: str | None = None
    """The last revision that has it, None if the latest has it."""
    needs: str | None = None
    """Required capability of the receiver, dotted; None if it needs none."""
    subject: str | None = None
    """The parameter that identifies its target: a tool's name, a resource's uri."""

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
        # 2025-11-25 has tasks in its core, for both sides; 2026-07-28 as an extension, for the client.
        Method("tasks/get", EITHER, since=_LEGACY, needs="tasks", subject="taskId"),
        Method("tasks/result", EITHER, since=_LEGACY, until=_LEGACY, needs="tasks", subject="taskId"),
        Method("tasks/list", EITHER, since=_LEGACY, until=_LEGACY, needs="tasks.list", subject="cursor"),
        Method("tasks/update", CLIENT, since=MODERN, subject="taskId"),
        Method("tasks/cancel", EITHER, since=_LEGACY, needs="tasks.cancel", subject="taskId"),
        # From 2026-07-28 on, these three are inside `input_required` results.
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
        Method("notifications/tasks", SERVER, since=MODERN, subject="taskId"),
    )
}

ERRORS = {
    -32700: "parse error",
    -32600: "invalid request",
    -32601: "method not found",
    -32602: "invalid params",
    -32603: "internal error",
    -32002: "resource not found",
    -32020: "header mismatch",
    -32021: "missing client capability",
    -32022: "unsupported protocol version",
    -32042: "url elicitation required",
}
"""Codes with one meaning everywhere. -32000 to -32019 belong to each SDK."""

META = "io.modelcontextprotocol/"
"""Prefix of the protocol's own keys in `_meta`, from 2026-07-28 on."""


def other(side: str) -> str:
    return SERVER if side == CLIENT else CLIENT


def is_known(method: str, revision: str) -> bool:
    """Return True if this revision has the method. Extensions are not known."""
    entry = METHODS.get(method)
    return entry is not None and entry.since <= revision and (entry.until is None or revision <= entry.until)
