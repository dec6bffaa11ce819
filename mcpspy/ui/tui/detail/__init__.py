"""The pane that reads a message."""
