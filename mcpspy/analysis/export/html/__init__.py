"""One self-contained HTML page per session, to read and search without network."""

from mcpspy.analysis.export.html.page import export

__all__ = ["export"]
