"""One page of a session to read and search, without network: the page, its style and its script."""

from mcpspy.analysis.export.html.page import export

__all__ = ["export"]
