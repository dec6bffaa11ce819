"""The extension Interceptors (SEP-2624), a draft: servers that validate or change messages."""

from mcpspy.core.protocol.extensions.extension import DRAFT, ExtensionMethod, McpExtension

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/interceptors",
    title="Interceptors",
    state=DRAFT,
    source="https://github.com/modelcontextprotocol/experimental-ext-interceptors",
    since="2025-11-25",
    methods=(
        ExtensionMethod("interceptors/list", "client", "cursor"),
        ExtensionMethod("interceptor/invoke", "client", "name"),
    ),
)
