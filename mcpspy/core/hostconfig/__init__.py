"""Configuration files of hosts: parsers of JSONC, TOML and YAML with positions; wrapping and unwrapping of servers."""
