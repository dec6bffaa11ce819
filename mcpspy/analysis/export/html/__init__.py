"""One self-contained HTML page per session, to read and search without network."""
