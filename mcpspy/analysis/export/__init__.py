"""Export sessions to the formats of other tools: one module per format, and a table of them."""

from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.formats import FORMATS, Exporter, ExportFormat, of_suffix

__all__ = ["FORMATS", "ExportFormat", "Exporter", "RecordedSession", "of_suffix"]
