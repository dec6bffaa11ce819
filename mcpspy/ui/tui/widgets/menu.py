"""A menu of options that are on or off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click, Key
from textual.widgets import Static

from mcpspy.ui.tui.widgets.base import DismissibleModal


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
