"""Interception: what is held, and what a person does with it."""
