"""A question of one line, over the screen that asks it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Ask(ModalScreen[str | None]):
    """A question; dismissed with what was typed, None if it was left."""

    CSS = """
    Ask { align: center middle; background: $background 60%; }
    Ask #ask { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
               border: solid $primary; }
    Ask Input { border: none; padding: 0; height: 1; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave", tooltip="leave it", id="ask.leave")
    ]

    HELP_NAME = "in a question"

    def __init__(self, question: str, answer: str = "") -> None:
        super().__init__()
        self._question = question
        self._answer = answer

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Static(self._question, markup=False)
            yield Input(self._answer, compact=True, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())
