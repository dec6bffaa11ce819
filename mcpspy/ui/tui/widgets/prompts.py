"""Modal prompts: a line of text, a confirmation, and an error response."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Footer, Input, Static


class Prompt(ModalScreen[ScreenResultType]):
    """A screen that is dismissed once: keys that arrive too fast would dismiss the screen below."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_current else AwaitComplete()


class TextPrompt(Prompt[str | None]):
    """A prompt for a line of text; dismissed with the text, or None if the user cancels."""

    CSS = """
    TextPrompt { align: center middle; background: $background 60%; }
    TextPrompt #ask { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
               border: solid $primary; }
    TextPrompt Input { border: none; padding: 0; height: 1; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel", id="ask.leave")]

    HELP_NAME = "prompt"

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


class ConfirmPrompt(Prompt[bool]):
    """A yes/no question; the text must be sanitized."""

    CSS = """
    ConfirmPrompt { align: center middle; background: $background 60%; }
    ConfirmPrompt #question { width: auto; max-width: 90%; height: auto; max-height: 80%; padding: 0 2;
                        background: $surface; border: solid $error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "yes", id="confirm.yes"),
        Binding("n,escape,q", "dismiss(False)", "no", id="confirm.no"),
    ]

    HELP_NAME = "confirmation"

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        yield Static(Text(f"{self.question}  y/n"), id="question")
        yield Footer(compact=True)


CODE, MESSAGE = -32603, "Internal error"
"""Code and message of an internal error, by JSON-RPC 2.0, section 5.1."""


class ErrorPrompt(Prompt[tuple[int, str] | None]):
    """A prompt for an error code and message; dismissed with both, or None if the user cancels."""

    CSS = """
    ErrorPrompt { align: center middle; background: $background 60%; }
    ErrorPrompt #refusal { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
                       border: solid $primary; }
    ErrorPrompt Input { border: none; padding: 0; height: 1; background: $surface; }
    ErrorPrompt Input:focus { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel", tooltip="keep it held", id="refusal.leave"),
    ]

    HELP_NAME = "error response"

    def __init__(self, name: str) -> None:
        """`name` is the sanitized name of the request."""
        super().__init__()
        self._name = name
        self._code = Input(str(CODE), compact=True, id="code")
        self._message = Input(MESSAGE, compact=True, id="message")
        self._error_line = Static("", classes="role--bad", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="refusal"):
            yield Static(f"Answer {self._name} with an error instead of forwarding it:", markup=False)
            yield Static("code (integer):", classes="role--quiet", markup=False)
            yield self._code
            yield Static("message:", classes="role--quiet", markup=False)
            yield self._message
            yield self._error_line

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Move from the code to the message, then dismiss the prompt."""
        event.stop()
        try:
            code = int(self._code.value.strip())
        except ValueError:
            self._error_line.update("error code: not an integer (use a number such as -32603)")
            self._code.focus()
            return
        self._error_line.update("")
        if event.input is self._code:
            self._message.focus()
        else:
            self.dismiss((code, self._message.value))
