"""MCP through a forward proxy: `http --forward`, `exec`, `ca`. CONNECT, TLS, HTTP/2 are mitmproxy's."""
