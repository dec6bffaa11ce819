"""`mcpspy http`: the reverse proxy in front of an HTTP server."""
