"""Fuzzing: properties that hold for any bytes."""
