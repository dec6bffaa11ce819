"""The error that a held request is answered with: a code and a few words."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

CODE, MESSAGE = -32603, "Internal error"
"""What JSON-RPC 2.0 has for a server that failed, section 5.1."""


class Refusal(ModalScreen[tuple[int, str] | None]):
    """Two lines to fill in; dismissed with both, None if it was left."""

    CSS = """
    Refusal { align: center middle; background: $background 60%; }
    Refusal #refusal { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
                       border: solid $primary; }
    Refusal Input { border: none; padding: 0; height: 1; background: $surface; }
    Refusal Input:focus { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave", tooltip="leave it held", id="refusal.leave"),
    ]

    HELP_NAME = "in an answer"

    def __init__(self, name: str) -> None:
        """`name` is what to call the request; inert."""
        super().__init__()
        self._name = name
        self._code = Input(str(CODE), compact=True, id="code")
        self._message = Input(MESSAGE, compact=True, id="message")
        self._wrong = Static("", classes="role--bad", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="refusal"):
            yield Static(f"Answer {self._name} with this error; its peer will not see it.", markup=False)
            yield Static("code, a whole number:", classes="role--quiet", markup=False)
            yield self._code
            yield Static("message:", classes="role--quiet", markup=False)
            yield self._message
            yield self._wrong

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go from the code to the message, and from there on."""
        event.stop()
        try:
            code = int(self._code.value.strip())
        except ValueError:
            self._wrong.update("the code is a whole number, as in -32603")
            self._code.focus()
            return
        self._wrong.update("")
        if event.input is self._code:
            self._message.focus()
        else:
            self.dismiss((code, self._message.value))
