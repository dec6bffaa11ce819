"""Session → answer: pure."""
