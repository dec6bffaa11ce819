"""The control socket of a live session: JSON lines on a socket that only its owner can open."""
