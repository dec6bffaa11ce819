"""`mcpspy mock`: serves recordings on stdio and HTTP."""
