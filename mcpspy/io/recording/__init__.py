"""Recordings on disk: writing, reading, following, listing."""
