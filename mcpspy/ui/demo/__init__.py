"""A small real session: a weather server and a client that uses it."""
