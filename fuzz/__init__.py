"""Fuzzing: what must hold for any bytes at all."""
