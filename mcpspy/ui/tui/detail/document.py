"""What the detail pane is given, and the pieces it makes of it.

Owns the shapes: a document of a few parts, and sections, each a few lines
said about a text and the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mcpspy.ui.tui.detail.json_view import Folds, StyledSpan
from mcpspy.ui.tui.widgets.columns import Piece


class DocumentPart(NamedTuple):
    """One message of an exchange, or a note."""

    name: str
    """`request`, `response`, `message`, `note`, or `sent`: what went on in place of the part before."""
    head: Sequence[Piece]
    """What is said above the body."""
    data: bytes
    """The peer's own bytes."""


class Document(NamedTuple):
    """What is shown together."""

    parts: Sequence[DocumentPart]
    """One, or a request and its response; and what was sent in their place."""
    headers: Sequence[Piece] = ()
    """Lines of the head of the HTTP exchange; none on stdio."""


class TextSource(Protocol):
    """Lines of a text, each inert, and where in the text they are."""

    @property
    def text(self) -> bytes:
        """What is searched."""

    def __len__(self) -> int:
        """Return how many lines there are."""

    def __getitem__(self, line: int) -> str:
        """Return one of them."""

    def start(self, line: int) -> int:
        """Return where a line begins in the text."""

    def line_at(self, offset: int) -> int:
        """Return the line that a place in the text belongs to."""

    def spans(self, line: int, shown: str) -> list[StyledSpan]:
        """Return what has a colour in a line."""

    def wider_than(self, columns: int, most: int = ...) -> list[int]:
        """Return the lines that may take more than so many columns; of more than `most`, only some."""

    def fitted(self, width: int, most: int) -> TextSource:
        """Return lines that suit a width, of which no more than `most` are measured if that can be."""


class Section(NamedTuple):
    """Lines about a text, and the text."""

    head: Sequence[Piece]
    source: TextSource
    folds: Folds | None = None
    """If it is JSON."""
    pointer: str = ""
    """Where in the message the text stands."""
    is_nested: bool = False
    """Whether the text is that of a string, and JSON once more."""
