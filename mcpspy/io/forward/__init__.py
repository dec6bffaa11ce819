"""`http --forward`, `exec`, `ca`: MCP through a forward proxy, with TLS by mitmproxy."""
