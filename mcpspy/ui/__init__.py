"""What people touch: the command line, the terminal UI, the demo."""
