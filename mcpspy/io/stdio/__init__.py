"""`mcpspy run`: a stdio server between two pipes."""
