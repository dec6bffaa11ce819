"""MCP on the wire: JSON-RPC messages, tables of the specification, HTTP and MCP headers, peers."""
