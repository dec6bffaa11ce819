"""The extension Events (SEP-3415), a draft: events that a client polls, streams or receives."""

from mcpspy.core.protocol.extensions.extension import DRAFT, ExtensionMethod, McpExtension

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/events",
    title="Events",
    state=DRAFT,
    source="https://github.com/modelcontextprotocol/experimental-ext-triggers-events",
    since="2026-07-28",
    methods=(
        ExtensionMethod("events/list", "client", "cursor"),
        ExtensionMethod("events/poll", "client"),
        ExtensionMethod("events/stream", "client"),
        ExtensionMethod("events/subscribe", "client"),
        ExtensionMethod("events/unsubscribe", "client"),
        ExtensionMethod("notifications/events/event", "server"),
    ),
)
