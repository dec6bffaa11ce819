"""HAR, Markdown, HTML, Mermaid, OTLP, CSV, JSONL: one module per format."""

from mcpspy.analysis.export.base import RecordedSession
from mcpspy.analysis.export.formats import FORMATS, Exporter, ExportFormat, of_suffix

__all__ = ["FORMATS", "ExportFormat", "Exporter", "RecordedSession", "of_suffix"]
