"""The extension Server Cards (SEP-2127), a draft: descriptions of servers at a URL."""

from mcpspy.core.protocol.extensions.extension import DRAFT, McpExtension

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/server-card",
    title="Server Cards",
    state=DRAFT,
    source="https://github.com/modelcontextprotocol/experimental-ext-server-card",
    since="2025-11-25",
)
