"""The terminal UI: sessions, and one session as it happens. Imported by `mcpspy tui` alone."""
