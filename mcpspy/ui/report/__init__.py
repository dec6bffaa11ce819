"""Diff, lint and stats as text, JSON, JUnit, Markdown, SARIF, GitHub."""
