"""Modal prompts (a line of text, a confirmation, and an error response), and a menu of options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click, Key
from textual.widgets import Input, Static

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.ui.tui.widgets.base import DismissibleModal


class TextPrompt(DismissibleModal[str | None]):
    """A prompt for a line of text; dismissed with the text, or None if the user cancels."""

    CSS = """
    TextPrompt { align: center middle; background: $background 60%; }
    TextPrompt #ask { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
               border: solid $primary; }
    TextPrompt Input { border: none; padding: 0; height: 1; background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel", id="ask.leave")]

    HELP_NAME = "prompt"

    def __init__(
        self,
        question: str,
        answer: str = "",
        *,
        done: str = "confirm",
        about: Callable[[str], str] | None = None,
        act: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        """`done` is the verb of Enter, `about` returns a line about the typed text.

        `act` uses the text before the prompt is dismissed. If it raises McpspyError, the prompt shows why and stays.
        """
        super().__init__()
        self._question = question
        self._answer = answer
        self._keys = f"enter: {done}   esc: cancel"
        self._about = about
        self._act = act
        self._line = Static("", id="about", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Static(self._question, markup=False)
            yield Input(self._answer, compact=True, select_on_focus=False)
            if self._about is not None or self._act is not None:
                yield self._line
            yield Static(self._keys, classes="role--quiet", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(self._about(event.value.strip()) if self._about is not None else "", "quiet")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if self._act is None or not text:
            self.dismiss(text)
        else:
            self.run_worker(self._used(self._act, text), exclusive=True)

    async def _used(self, act: Callable[[str], Awaitable[object]], text: str) -> None:
        try:
            await act(text)
        except McpspyError as error:
            self._show(str(error), "bad")
        else:
            self.dismiss(text)

    def _show(self, text: str, role: str) -> None:
        self._line.update(sanitize(text))
        self._line.set_classes([f"role--{role}"])


class ConfirmPrompt(DismissibleModal[bool]):
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

    def __init__(self, question: str, yes: str = "yes", no: str = "no") -> None:
        """`yes` and `no` are the words for what the two keys do."""
        super().__init__()
        self.question = question
        self._keys = f"y: {yes}   n or esc: {no}"

    def compose(self) -> ComposeResult:
        yield Static(Text.assemble(f"{self.question}\n", (self._keys, "bold")), id="question")


CODE, MESSAGE = -32603, "Internal error"
"""Code and message of an internal error, by JSON-RPC 2.0, section 5.1."""

CODES = "code (-32601 method not found, -32602 invalid params, -32603 internal):"


class ErrorPrompt(DismissibleModal[tuple[int, str] | None]):
    """A prompt for an error code and message; dismissed with both, or None if the user cancels."""

    CSS = """
    ErrorPrompt { align: center middle; background: $background 60%; }
    ErrorPrompt #refusal { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
                       border: solid $primary; }
    ErrorPrompt Input { border: none; padding: 0; height: 1; background: $panel; }
    ErrorPrompt Input:focus { background: $primary-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel", tooltip="keep it held", id="refusal.leave"),
    ]

    HELP_NAME = "error response"

    def __init__(
        self, name: str, instead: str = "instead of forwarding it", cancel: str = "keep it held"
    ) -> None:
        """`name` is the sanitized name of the request; the other two complete the sentences of the prompt."""
        super().__init__()
        self._question = f"Answer {name} with an error {instead}:"
        self._cancel = cancel
        self._code = Input(str(CODE), compact=True, id="code")
        self._message = Input(MESSAGE, compact=True, id="message")
        self._error_line = Static("", classes="role--bad", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="refusal"):
            yield Static(self._question, markup=False)
            yield Static(CODES, classes="role--quiet", markup=False)
            yield self._code
            yield Static("message:", classes="role--quiet", markup=False)
            yield self._message
            yield self._error_line
            keys = f"enter: next field, then send   tab: other field   esc: {self._cancel}"
            yield Static(keys, classes="role--quiet", markup=False)

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


class MenuOption(NamedTuple):
    key: str
    label: str
    name: str
    """Passed to the function that toggles the option."""


class ToggleMenu(DismissibleModal[None]):
    """A menu whose options are toggled by their letter, enter, space or a click."""

    CSS = """
    ToggleMenu { align: center middle; background: $background 60%; }
    ToggleMenu #menu { width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
               background: $surface; border: solid $primary; }
    ToggleMenu Static { width: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next", id="menu.down"),
        Binding("up,k", "move(-1)", "previous", id="menu.up"),
        Binding("enter,space", "choose", "toggle", id="menu.toggle"),
        Binding("escape,q,V", "dismiss(None)", "close", id="menu.close"),
    ]

    HELP_NAME = "menu"

    def __init__(
        self,
        title: str,
        options: Sequence[MenuOption],
        is_on: Callable[[str], bool],
        toggle: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._heading = title
        self._options = options
        self._is_on = is_on
        self._toggle = toggle
        self._cursor = 0
        self._lines = Static(markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="menu"):
            yield self._lines
        self._show()

    def on_key(self, event: Key) -> None:
        """Toggle the option of a letter."""
        place = next((n for n, option in enumerate(self._options) if option.key == event.key), None)
        if place is not None:
            event.stop()
            self._cursor = place
            self.action_choose()

    def on_click(self, event: Click) -> None:
        place = int(event.screen_y) - self._lines.content_region.y - 1
        if event.widget is self._lines and 0 <= place < len(self._options):
            self._cursor = place
            self.action_choose()

    def action_move(self, step: int) -> None:
        self._cursor = (self._cursor + step) % len(self._options)
        self._show()

    def action_choose(self) -> None:
        self._toggle(self._options[self._cursor].name)
        self._show()

    def _show(self) -> None:
        text = Text()
        text.append(self._heading, "bold")
        key = self.app.get_component_styles("role--key").partial_rich_style
        for place, (letter, label, name) in enumerate(self._options):
            text.append(f"\n{'▸' if place == self._cursor else ' '} ", "")
            text.append(letter, key)
            text.append(
                f" [{'x' if self._is_on(name) else ' '}] {label}", "bold" if place == self._cursor else ""
            )
        text.append(
            "\n\nletter or enter: toggle · esc: close",
            self.app.get_component_styles("role--quiet").partial_rich_style,
        )
        self._lines.update(text)
