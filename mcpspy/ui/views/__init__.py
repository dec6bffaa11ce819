"""Views of contents, and the columns and views of the user's files (docs/scripting.md)."""
