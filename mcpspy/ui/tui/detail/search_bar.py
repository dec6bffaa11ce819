"""The line in which the words to look for are typed."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class SearchBox(Input):
    """An input that is there while it is typed in."""

    DEFAULT_CSS = """
    SearchBox { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    SearchBox:focus { border: none; }
    SearchBox.-open { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,tab,shift+tab", "close", "leave the search", show=False, id="search.close"),
    ]

    HELP_NAME = "in the search"

    class Closed(Message):
        """It was left without looking for anything."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, placeholder="words, or /regex/; a capital letter minds case")

    def open(self) -> None:
        """Let words be typed; the last ones are there, to be replaced."""
        self.add_class("-open")
        self.focus()
        self.select_all()

    def action_close(self) -> None:
        self.post_message(self.Closed())
