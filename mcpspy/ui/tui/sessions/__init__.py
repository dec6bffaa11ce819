"""The screen of all sessions."""
