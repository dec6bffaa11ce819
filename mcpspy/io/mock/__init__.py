"""`mcpspy mock`: a recording in the place of its server; `core.mock` says what, these modules say it."""
