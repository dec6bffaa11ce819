"""Differences, findings and statistics as text: terminal, JSON, JUnit, Markdown, SARIF, GitHub."""
