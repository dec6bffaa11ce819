"""A host's configuration: parse JSONC, TOML, YAML with positions; wrap, unwrap, edit."""
