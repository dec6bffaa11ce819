"""The page of keys, made from the bindings themselves.

Owns the names of keys and their order. Refuses to list a key anywhere by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

NAMES = {
    "down": "↓",
    "up": "↑",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "question_mark": "?",
    "escape": "esc",
    "shift+tab": "shift-tab",
    "ctrl+c": "ctrl-c",
    "ctrl+q": "ctrl-q",
}

Group = tuple[str, Sequence[BindingType]]


def lines(groups: Iterable[Group]) -> list[tuple[str, str]]:
    """Return the page: keys and what they do; a heading has no keys, a blank line has neither."""
    page: list[tuple[str, str]] = []
    for name, bindings in groups:
        page += [("", ""), ("", name)] if page else [("", name)]
        for binding in bindings:
            assert isinstance(binding, Binding)
            keys = " ".join(NAMES.get(key, key) for key in binding.key.split(","))
            page.append((keys, binding.tooltip or binding.description))
    return page


class HelpScreen(ModalScreen[None]):
    """The keys of the screen below."""

    CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen #help { width: 74; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
                       background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    HelpScreen Static { width: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "close")]

    def __init__(self, groups: Iterable[Group]) -> None:
        super().__init__()
        self._lines = lines(groups)

    def compose(self) -> ComposeResult:
        """Show the page; it scrolls where the terminal is low."""
        wide = max(cell_len(keys) for keys, _ in self._lines) + 2
        page = Text()
        for keys, what in self._lines:
            page.append(
                f"{keys}{' ' * (wide - cell_len(keys))}{what}\n" if keys else f"{what}\n",
                "" if keys else "bold",
            )
        with VerticalScroll(id="help"):
            yield Static(page)
