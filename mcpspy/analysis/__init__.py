"""Session in, answer out: lint, stats, diff and export move in here. Pure, as `core` is."""
