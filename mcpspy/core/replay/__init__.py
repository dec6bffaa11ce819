"""Replay of a recorded client: its plan, and a player that sends it to one live server, without I/O."""
