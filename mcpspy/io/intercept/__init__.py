"""Interception of a session on any transport; `io.stdio`, `io.http` and `io.bridge` execute its steps."""
