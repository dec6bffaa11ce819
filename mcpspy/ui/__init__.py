"""What people touch: command line, terminal UI, reports, pytest plugin, demo."""
