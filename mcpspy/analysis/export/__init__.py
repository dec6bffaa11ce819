"""HAR, Markdown, HTML, Mermaid, OTLP, CSV, JSONL: the table of export formats.

Its modules are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from mcpspy.analysis.export.base import RecordedSession

__all__ = ["FORMATS", "ExportFormat", "Exporter", "RecordedSession", "of_suffix"]

Exporter = Callable[[Iterable[Any]], Iterator[str]]
"""Yields the text of a file in pieces, from `RecordedSession`s. A format without `several` gets exactly one session."""


class ExportFormat(NamedTuple):
    name: str
    suffix: str
    about: str
    module: str
    """Module of its function, which takes all sessions if `several`, otherwise one."""
    several: bool
    streams: bool = False
    """True if the function takes each `ExchangeTable`."""
    function: str = "export"

    def exporter(self) -> Exporter:
        export = getattr(import_module(self.module), self.function)
        return export if self.several else lambda sessions: export(*sessions)


_LINES = f"{__package__}.exchange_lines"

FORMATS = {
    each.name: each
    for each in (
        ExportFormat(
            "har", ".har", "HTTP Archive 1.2, for browser developer tools", f"{__package__}.har", True
        ),
        ExportFormat(
            "html", ".html", "one searchable page, works offline", f"{__package__}.html.page", False
        ),
        ExportFormat(
            "markdown", ".md", "a document, one section per exchange", f"{__package__}.markdown", True
        ),
        ExportFormat("mermaid", ".mmd", "a sequence diagram", f"{__package__}.mermaid", False),
        ExportFormat("otlp", ".otlp.json", "OpenTelemetry spans, as OTLP/JSON", f"{__package__}.otlp", True),
        ExportFormat("csv", ".csv", "a table, one row per exchange", _LINES, True, True, "export_csv"),
        ExportFormat(
            "jsonl", ".jsonl", "strict JSON, one line per exchange", _LINES, True, True, "export_jsonl"
        ),
    )
}


def of_suffix(name: str) -> ExportFormat | None:
    fitting = [each for each in FORMATS.values() if name.lower().endswith(each.suffix)]
    return max(fitting, key=lambda each: len(each.suffix), default=None)
