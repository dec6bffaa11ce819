"""Text for people: its width, its numbers and times, and the terminal on which commands print it."""
