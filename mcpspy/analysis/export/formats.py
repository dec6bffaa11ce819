"""The formats a session can be exported to.

Owns their names, the suffixes they are guessed from, and which module writes
each; a module is imported when its format is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from mcpspy.analysis.export.base import RecordedSession

Exporter = Callable[[Iterable[RecordedSession]], Iterator[str]]
"""Yields the text of a file in pieces. A format that is not `several` is given one session."""


class ExportFormat(NamedTuple):
    """One of them."""

    name: str
    suffix: str
    """Of a file's name, with its dot."""
    about: str
    """What it is, in a line."""
    module: str
    """Where its `export` is: of the sessions if there may be `several`, else of the one session."""
    several: bool
    """Whether several sessions can go into one file."""

    def exporter(self) -> Exporter:
        """Return the function that writes it; imports it now."""
        export = import_module(self.module).export
        return export if self.several else lambda sessions: export(*sessions)


FORMATS = {
    each.name: each
    for each in (
        ExportFormat(
            "har", ".har", "HTTP Archive 1.2, for the browser's developer tools", f"{__package__}.har", True
        ),
        ExportFormat("html", ".html", "one page to search, without network", f"{__package__}.html", False),
        ExportFormat("markdown", ".md", "a document: a section an exchange", f"{__package__}.markdown", True),
        ExportFormat("mermaid", ".mmd", "a sequence diagram", f"{__package__}.mermaid", False),
        ExportFormat("otlp", ".otlp.json", "OpenTelemetry spans, as OTLP/JSON", f"{__package__}.otlp", True),
        ExportFormat("csv", ".csv", "a table: a line an exchange", f"{__package__}.csv", True),
        ExportFormat("jsonl", ".jsonl", "strict JSON: a line an exchange", f"{__package__}.jsonl", True),
    )
}


def of_suffix(name: str) -> ExportFormat | None:
    """Return the format that a file of this name has; None if its suffix is of none."""
    fitting = [each for each in FORMATS.values() if name.lower().endswith(each.suffix)]
    return max(fitting, key=lambda each: len(each.suffix), default=None)
