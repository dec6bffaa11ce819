"""A forward proxy for MCP: `http --forward`, `exec`, `ca`. mitmproxy does CONNECT, TLS and HTTP/2."""
