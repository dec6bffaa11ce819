"""The extension OAuth Client Credentials: authorization without a user."""

from mcpspy.core.protocol.extensions.extension import FINAL, McpExtension

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/oauth-client-credentials",
    title="OAuth Client Credentials",
    state=FINAL,
    source="https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials",
    since="2025-11-25",
)
