"""`mcpspy http`: the reverse proxy, one exchange, sessions, interception over HTTP."""
