"""MCP on the wire: JSON-RPC messages, the tables of the specification, HTTP and MCP headers."""
