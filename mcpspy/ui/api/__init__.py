"""The public API of `import mcpspy` (docs/api.md): typed facades over what the commands use."""
