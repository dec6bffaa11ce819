"""The extension Enterprise-Managed Authorization: access by an identity provider."""

from mcpspy.core.protocol.extensions.extension import FINAL, McpExtension

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/enterprise-managed-authorization",
    title="Enterprise-Managed Authorization",
    state=FINAL,
    source="https://modelcontextprotocol.io/extensions/auth/enterprise-managed-authorization",
    since="2025-11-25",
)
