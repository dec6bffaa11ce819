"""`mcpspy http -- COMMAND`: a stdio server offered over HTTP."""
