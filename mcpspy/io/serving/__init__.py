"""An MCP server over HTTP, and its clients: those of a mock, or of live servers."""
