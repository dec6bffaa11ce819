"""`mcpspy run`: server process, poll loop (threads on Windows), channels, interception on stdio."""
