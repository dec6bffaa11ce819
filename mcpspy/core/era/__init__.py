"""Translation between a host and a server whose revisions of MCP have no era in common."""
