"""Restart of a stdio server in the middle of a session: what the client and the new server get."""
