"""The scripts that mcpspy contains: `--script builtin:NAME`. Each is an example, too."""
