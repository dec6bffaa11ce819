"""Recordings on disk: write, read, scan, tail, catalog."""
