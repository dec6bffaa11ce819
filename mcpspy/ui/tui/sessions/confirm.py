"""A question that is answered by y or n.

Owns that nothing but y is a yes.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Footer, Static


class Confirm(ModalScreen[bool]):
    """A question above the screen below; takes text that is inert already."""

    CSS = """
    Confirm { align: center middle; background: $background 60%; }
    Confirm #question { width: auto; max-width: 90%; height: auto; max-height: 80%; padding: 0 2;
                        background: $surface; border: solid $error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "yes", id="confirm.yes"),
        Binding("n,escape,q", "dismiss(False)", "no", id="confirm.no"),
    ]

    HELP_NAME = "the question"

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        yield Static(Text(f"{self.question}  y/n"), id="question")
        yield Footer(compact=True)
