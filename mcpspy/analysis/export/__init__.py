"""Sessions in the formats of other tools: one module a format, and the table of them."""

from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.formats import FORMATS, Exporter, ExportFormat, of_suffix

__all__ = ["FORMATS", "ExportFormat", "Exporter", "RecordedSession", "of_suffix"]
