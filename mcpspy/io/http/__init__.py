"""`mcpspy http`: the reverse proxy, HTTP exchanges, sessions, and interception over HTTP."""
