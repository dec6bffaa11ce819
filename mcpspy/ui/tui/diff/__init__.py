"""The screen that compares two sessions, or two exchanges of one session."""
