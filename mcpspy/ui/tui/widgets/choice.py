"""A field of a form with one of several words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Key
from textual.message import Message
from textual.widgets import Static


class Choice(Static, can_focus=True):
    """One of several words, changed by left and right."""

    DEFAULT_CSS = """
    Choice { width: 1fr; height: 1; }
    Choice:focus { background: $primary-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space", "turn(1)", "next", tooltip="next value", id="choice.next"),
        Binding("left,h", "turn(-1)", "previous", tooltip="previous value", id="choice.previous"),
    ]

    HELP_NAME = "choice"

    class Changed(Message):
        """Posted when the user chose another value."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(
        self,
        words: Mapping[str, str],
        value: str,
        *,
        id: str,  # noqa: A002
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """`words` has the values with their words, `keys` the values that a key chooses."""
        super().__init__(id=id, markup=False)
        self._by_key = keys or {}
        self.words = dict(words)
        self.value = value

    def on_mount(self) -> None:
        self._show()

    def offer(self, words: Mapping[str, str]) -> None:
        """Offer other values."""
        self.words = dict(words)
        self._show()

    def choose(self, value: str) -> None:
        self.value = value
        self._show()

    def action_turn(self, step: int) -> None:
        values = list(self.words)
        self.value = values[(values.index(self.value) + step) % len(values)]
        self._show()
        self.post_message(self.Changed(self))

    def on_key(self, event: Key) -> None:
        if (value := self._by_key.get(event.key)) is not None:
            event.stop()
            self.choose(value)
            self.post_message(self.Changed(self))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.focus()
        self.action_turn(1)

    def _show(self) -> None:
        place = f"  {list(self.words).index(self.value) + 1}/{len(self.words)}" if len(self.words) > 1 else ""
        self.update(Text(f"< {self.words[self.value]} >{place}" if place else self.words[self.value]))
