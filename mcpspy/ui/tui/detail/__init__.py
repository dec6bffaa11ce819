"""The detail pane: one message, or a request and its response."""
