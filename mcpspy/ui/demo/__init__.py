"""A small real session to look at: a weather server, and a client that uses it."""
