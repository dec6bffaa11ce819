"""`mcpspy run`: forwards and records the pipes between a host and a stdio server."""
