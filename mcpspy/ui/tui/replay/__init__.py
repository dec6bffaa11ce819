"""Replay in the terminal UI: the dialog that asks for the server, and the screen that shows the steps."""
