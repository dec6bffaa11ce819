"""`mcpspy web`: the sessions of a folder in the browser, also live ones."""
