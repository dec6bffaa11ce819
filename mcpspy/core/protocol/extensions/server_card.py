"""The extension Server Cards (SEP-2127): descriptions of servers, and AI catalogs, which list them.

The SEP is final; its documents are defined in a repository that is experimental, so they may change.
"""

from mcpspy.core.protocol.extensions.extension import DRAFT, ExtensionDocument, McpExtension

SOURCE = "https://github.com/modelcontextprotocol/experimental-ext-server-card/blob/main/docs/discovery.md"

CARD, CATALOG = "server card", "AI catalog"

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/server-card",
    title="Server Cards",
    state=DRAFT,
    source=SOURCE,
    since="2025-11-25",
    documents=(
        ExtensionDocument(CARD, "/server-card", "application/mcp-server-card+json"),
        # Where drafts of 2025 had it, and where servers still serve it.
        ExtensionDocument(CARD, "/.well-known/mcp/server-card.json", "application/mcp-server-card+json"),
        ExtensionDocument(CATALOG, "/.well-known/ai-catalog.json", "application/ai-catalog+json"),
    ),
)
