"""Interception of a session on any transport. A transport, such as `io.stdio`, carries its messages."""
