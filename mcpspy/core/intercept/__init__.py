"""Interception engine: holds, edits, drops and answers messages; injected requests; watchdog."""
