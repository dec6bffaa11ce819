"""`mcpspy mock`: serve recordings on stdio and HTTP."""
