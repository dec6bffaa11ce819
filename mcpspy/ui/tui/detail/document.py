"""The input of the detail pane: documents of parts, and the sections made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mcpspy.ui.tui.detail.json_view import Folds, StyledSpan
from mcpspy.ui.tui.widgets.columns import Piece


class DocumentPart(NamedTuple):
    name: str
    """`request`, `response`, `message`, `note`, or `sent`: the message forwarded instead of the previous part."""
    head: Sequence[Piece]
    data: bytes


class Document(NamedTuple):
    parts: Sequence[DocumentPart]
    """One part, or a request and its response, each followed by the message forwarded instead of it."""
    headers: Sequence[Piece] = ()
    """Lines of HTTP headers; empty on stdio."""


class TextSource(Protocol):
    """Sanitized lines of a text, with their offsets in it."""

    @property
    def text(self) -> bytes: ...

    def __len__(self) -> int: ...

    def __getitem__(self, line: int) -> str: ...

    def start(self, line: int) -> int: ...

    def line_at(self, offset: int) -> int: ...

    def spans(self, line: int, shown: str) -> list[StyledSpan]: ...

    def wider_than(self, columns: int, most: int = ...) -> list[int]:
        """Return the lines that may take more than `columns`, at most `most` of them."""

    def fitted(self, width: int, most: int) -> TextSource:
        """Return lines for a width; if possible, no more than `most` of them need measuring."""


class Section(NamedTuple):
    """A text with header lines."""

    head: Sequence[Piece]
    source: TextSource
    folds: Folds | None = None
    """None if the text is not JSON."""
    pointer: str = ""
    is_nested: bool = False
    """True if the text comes from a string that holds JSON."""
