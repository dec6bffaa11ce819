"""Sessions in the formats of other tools: one module a format, and the table of them."""

from mcpspy.analysis.export.formats import FORMATS, Exporter, Format, of_suffix
from mcpspy.analysis.export.recorded import Recorded

__all__ = ["FORMATS", "Exporter", "Format", "Recorded", "of_suffix"]
