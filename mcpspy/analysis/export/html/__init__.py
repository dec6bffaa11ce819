"""One page of a session to read and search without network: page, style and script."""
