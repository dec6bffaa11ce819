"""The extension Events (SEP-3415), a draft: events that a client polls, streams or receives.

A webhook is a POST of the server to a URL of the client, signed with the secret of the subscription as Standard Webhooks
describe it. The secret is `delivery.secret` of `events/subscribe`, whose name is one of those that are always redacted.
"""

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
        ExtensionMethod("events/stream", "client", "name"),
        ExtensionMethod("events/subscribe", "client", "name"),
        ExtensionMethod("events/unsubscribe", "client", "name"),
        ExtensionMethod("notifications/events/active", "server"),
        ExtensionMethod("notifications/events/event", "server", "name"),
        ExtensionMethod("notifications/events/error", "server"),
        ExtensionMethod("notifications/events/heartbeat", "server"),
        ExtensionMethod("notifications/events/terminated", "server"),
    ),
    secret_headers=("webhook-signature",),
)
