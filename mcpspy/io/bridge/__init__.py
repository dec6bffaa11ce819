"""`mcpspy bridge`: connects a host that uses stdio to a server that uses HTTP."""
