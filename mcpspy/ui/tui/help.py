"""The help screen: all keys of a screen, generated from its bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

NAMES = {
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "escape": "esc",
    "question_mark": "?",
    "slash": "/",
    "backslash": "\\",
    "delete": "del",
    "full_stop": ".",
    "comma": ",",
    "colon": ":",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "minus": "-",
    "plus": "+",
    "equals_sign": "=",
    "number_sign": "#",
    "dollar_sign": "$",
    "asterisk": "*",
    "exclamation_mark": "!",
    "semicolon": ";",
    "less_than_sign": "<",
    "greater_than_sign": ">",
}

EDGE = 7
"""Columns of the box around the text: border, padding, scrollbar."""

BETWEEN = 4

Group = tuple[str, Sequence[BindingType]]
KeyLine = tuple[str, str]


def name(key: str) -> str:
    """Return a key as it is labelled on keyboards."""
    *held, last = key.split("+") if len(key) > 1 else [key]
    return "-".join([*held, NAMES.get(last, last)])


def lines(groups: Iterable[Group]) -> list[KeyLine]:
    """Return rows of keys and descriptions; a heading has no keys, a blank line has neither."""
    page: list[KeyLine] = []
    for heading, bindings in groups:
        page += [("", ""), ("", heading)] if page else [("", heading)]
        for binding in bindings:
            assert isinstance(binding, Binding)
            keys = " ".join(name(key) for key in binding.key.split(","))
            page.append((keys, binding.tooltip or binding.description))
    return page


def page(groups: Sequence[Group], room: int) -> Text:
    """Return the page, in two columns if they fit side by side."""
    split = min(
        range(1, len(groups) + 1), key=lambda at: max(len(lines(groups[:at])), len(lines(groups[at:])))
    )
    halves = [lines(half) for half in (groups[:split], groups[split:]) if half]
    if sum(map(_width, halves)) + BETWEEN * (len(halves) - 1) <= room:
        columns = [_drawn(half, _width(half)) for half in halves]
    else:
        whole = lines(groups)
        columns = [_drawn(whole, min(_width(whole), room))]
    return Text("\n").join(
        Text(" " * BETWEEN).join(
            cell or Text(" " * _widest(column)) for cell, column in zip(row, columns, strict=True)
        )
        for row in zip_longest(*columns)
    )


def _keys_width(text: Sequence[KeyLine]) -> int:
    return max(cell_len(keys) for keys, _ in text) + 2


def _width(text: Sequence[KeyLine]) -> int:
    keys = _keys_width(text)
    return max(cell_len(description) + (keys if key else 0) for key, description in text)


def _widest(column: Sequence[Text]) -> int:
    return max(line.cell_len for line in column)


def _drawn(text: Sequence[KeyLine], width: int) -> list[Text]:
    """Return the lines padded to a width, with descriptions wrapped."""
    indent = _keys_width(text)
    drawn: list[Text] = []
    for keys, description in text:
        if not keys:
            drawn.append(Text(description, "bold"))
            continue
        for place, part in enumerate(wrap(description, max(width - indent, 20))):
            drawn.append(Text(f"{'' if place else keys:<{indent}}{part}"))
    for line in drawn:
        line.pad_right(width - line.cell_len)
    return drawn


class HelpScreen(ModalScreen[None]):
    CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen #help { width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
                       background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    HelpScreen Static { width: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "close")]

    def __init__(self, groups: Iterable[Group]) -> None:
        super().__init__()
        self._groups = list(groups)
        self._page = Static()

    def compose(self) -> ComposeResult:
        self._lay_out(self.app.size.width)
        with VerticalScroll(id="help"):
            yield self._page

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width)

    def _lay_out(self, width: int) -> None:
        self._page.update(page(self._groups, width - EDGE))
