"""Held messages: what is held, and what the user does with it."""
