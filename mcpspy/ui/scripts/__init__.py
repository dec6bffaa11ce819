"""Scripts: the process that runs them, their skeleton, and those that mcpspy contains."""
