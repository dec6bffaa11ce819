"""`mcpspy mock`: recordings in the place of their server, on stdio and over HTTP."""
