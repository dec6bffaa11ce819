"""The help screen: all keys of a screen, generated from its bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len
from rich.style import StyleType
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from mcpspy.ui.tui.bindings import GROUPS
from mcpspy.ui.tui.widgets.base import DismissibleModal

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
    "greater_than_sign s": "> s",
    "greater_than_sign c": "> c",
    "greater_than_sign w": "> w",
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
    "left_parenthesis": "(",
    "greater_than_sign": ">",
}

EDGE = 7
"""Columns of the box around the text: border, padding, scrollbar."""

BETWEEN = 3
INDENT = 11
"""Columns of the keys before a description. Further keys of the same action are left out; a long key moves its own."""

LEAST = 44
"""Least columns of a column, if there are several."""

Group = tuple[str, Sequence[BindingType]]
KeyLine = tuple[str, str]


def name(key: str) -> str:
    """Return a key as it is labelled on keyboards."""
    *held, last = key.split("+") if len(key) > 1 else [key]
    return "-".join([*held, NAMES.get(last, last)])


def grouped(heading: str, bindings: Iterable[BindingType]) -> list[Group]:
    """Divide bindings into the groups of GROUPS; the first one may have no heading there."""
    groups: list[tuple[str, list[BindingType]]] = [(heading, [])]
    for binding in bindings:
        if isinstance(binding, Binding) and binding.id in GROUPS:
            groups.append((GROUPS[binding.id], []))
        groups[-1][1].append(binding)
    return [group for group in groups if all(group)]


def lines(groups: Iterable[Group]) -> list[KeyLine]:
    """Return rows of keys and descriptions; a heading has no keys, a blank line has neither."""
    page: list[KeyLine] = []
    for heading, bindings in groups:
        page += [("", ""), ("", heading)] if page else [("", heading)]
        for binding in bindings:
            assert isinstance(binding, Binding)
            first, *others = map(name, binding.key.split(","))
            for other in others:
                first += f" {other}" if cell_len(first) + cell_len(other) < INDENT - 2 else ""
            page.append((first, binding.tooltip or binding.description))
    return page


def page(groups: Sequence[Group], room: int, key: StyleType = "") -> Text:
    """Return the page, in up to three columns."""
    most = max(min(3, (room + BETWEEN) // (LEAST + BETWEEN)), 1)
    for count in range(most, 0, -1):
        width = (room - BETWEEN * (count - 1)) // count
        pieces = [_drawn(lines([group]), width, key, INDENT) for group in groups]
        if len(columns := _packed(pieces, count)) == count or count == 1:
            break
    widths = [max(line.cell_len for line in column) for column in columns]
    shown = []
    for row in zip_longest(*columns):
        cells = [cell or Text() for cell in row]
        for cell, wide in zip(cells, widths, strict=True):
            cell.pad_right(wide - cell.cell_len)
        shown.append(Text(" " * BETWEEN).join(cells))
    return Text("\n").join(shown)


def _packed(pieces: Sequence[list[Text]], count: int) -> list[list[Text]]:
    """Put pieces into at most `count` columns, in order, so that the highest column is as low as possible."""
    whole = sum(map(len, pieces)) + len(pieces)
    height = whole // count
    while True:
        columns: list[list[Text]] = []
        for piece in pieces:
            if columns and len(columns[-1]) + 1 + len(piece) <= height:
                columns[-1] += [Text(), *piece]
            else:
                columns.append([*piece])
        if len(columns) <= count:
            return columns
        height += 1


def _drawn(text: Sequence[KeyLine], width: int, key: StyleType, indent: int) -> list[Text]:
    """Return lines of at most `width` columns, with descriptions wrapped."""
    drawn: list[Text] = []
    for keys, description in text:
        if not keys:
            drawn.append(Text.assemble((description, "bold")))
            continue
        begin = max(indent, cell_len(keys) + 2)
        first, *rest = wrap(" " * begin + description, max(width, begin + 12), subsequent_indent=" " * indent)
        drawn.append(Text.assemble((f"{keys:<{begin}}", key), first[begin:]))
        drawn += map(Text, rest)
    return drawn


def syntax(text: Sequence[KeyLine], room: int, key: StyleType = "") -> Text:
    """Return the page of a filter language."""
    indent = max(cell_len(example) for example, _ in text) + 2
    return Text("\n").join(_drawn(text, room, key, indent))


class HelpScreen(DismissibleModal[None]):
    CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen #help { width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 2;
                       background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    HelpScreen Static { width: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss(None)", "close"),
        Binding("slash", "turn", "filter syntax"),
    ]

    def __init__(
        self,
        groups: Iterable[Group],
        *,
        filters: Sequence[KeyLine] = (),
        shows_syntax: bool = False,
    ) -> None:
        """`filters` are the lines of the page of a filter language, and `shows_syntax` begins with it."""
        super().__init__()
        self._groups = list(groups)
        self._filters = filters
        self._page = Static()
        self._box = VerticalScroll(id="help")
        self._shows_syntax = shows_syntax

    def compose(self) -> ComposeResult:
        self._lay_out(self.app.size.width)
        with self._box:
            yield self._page

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width)

    def action_turn(self) -> None:
        """Change between the keys and the syntax of filters."""
        self._shows_syntax = bool(self._filters) and not self._shows_syntax
        self._lay_out(self.app.size.width)
        self._box.scroll_home(animate=False)

    def _lay_out(self, width: int) -> None:
        key = self.app.get_component_styles("role--key").partial_rich_style
        make = partial(syntax, self._filters) if self._shows_syntax else partial(page, self._groups)
        self._page.update(make(width - EDGE, key))
        self._box.border_title = "Filter syntax" if self._shows_syntax else "Keys"
        other = "keys" if self._shows_syntax else "filter syntax"
        turn = f" · /: {other}" if self._filters else ""
        self._box.border_subtitle = f"esc: close{turn} · ↑↓: scroll"
