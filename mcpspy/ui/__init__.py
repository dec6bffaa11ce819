"""User interfaces: command line, terminal UI, reports, pytest plugin, demo."""
