"""`mcpspy mcp`: an MCP server by which coding agents read, follow and replay recordings."""
