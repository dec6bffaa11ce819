"""Interception in the terminal UI: held messages, the message editor, and resent requests."""
