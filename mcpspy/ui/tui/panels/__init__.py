"""Panels over a session: timeline, statistics, capabilities."""
