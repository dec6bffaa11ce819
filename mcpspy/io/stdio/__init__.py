"""`mcpspy run`: the server process, the poll loop (threads on Windows), channels, and interception on stdio."""
