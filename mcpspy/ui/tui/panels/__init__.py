"""The pages over a session: timeline, numbers, server."""
