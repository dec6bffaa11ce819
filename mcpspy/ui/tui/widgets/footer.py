"""The last line of a screen: its most important keys, and always those of the help and the palette."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from mcpspy.ui.tui.bindings import FOOTERS
from mcpspy.ui.tui.help import name
from mcpspy.ui.tui.widgets.base import BaseWidget
from mcpspy.ui.tui.widgets.columns import Piece

BETWEEN = 2
"""Columns between two keys."""

NARROW = 50
"""Below this many columns, the keys of the help and palette have no label."""

ALWAYS = {"app.help": "help", "command_palette": "more"}
"""Action → label of the keys at the right end."""


class FooterKey(NamedTuple):
    key: str
    """Textual's name of the key, pressed by a click."""
    shown: str
    label: str

    @property
    def width(self) -> int:
        return cell_len(self.shown) + (1 + cell_len(self.label) if self.label else 0)


def footer_keys(
    active: Mapping[str, ActiveBinding], states: Iterable[str]
) -> tuple[list[FooterKey], list[FooterKey]]:
    """Return the keys by importance, and those for the right end. `states` are keys of FOOTERS, if the screen has any."""
    keys: dict[str, FooterKey] = {}
    always: dict[str, FooterKey] = {}
    for key, (_, binding, is_enabled, _) in active.items():
        which = binding.id or binding.action
        if is_enabled and binding.action in ALWAYS:
            always.setdefault(binding.action, FooterKey(key, name(key), ALWAYS[binding.action]))
        elif is_enabled and (which not in keys or key == "enter"):
            label = binding.description if binding.show else ""
            keys[which] = FooterKey(key, binding.key_display or name(key), label)
    labels: dict[str, str] = {}
    for state in states:
        for which, label in FOOTERS[state].items():
            labels.setdefault(which, label)
    shown = [key for key in keys.values() if key.label and not labels]
    for each, label in labels.items():
        several = [keys[which] for which in each.split() if which in keys]
        shown += [FooterKey(several[0].key, " ".join(key.shown for key in several), label)] if several else []
    return shown, [always[action] for action in ALWAYS if action in always]


def fitting(
    keys: Iterable[FooterKey], always: Iterable[FooterKey], width: int
) -> tuple[list[FooterKey], list[FooterKey]]:
    """Return the keys that fit into a line. A key that does not fit is left out for shorter ones after it."""
    right = [key if width >= NARROW else key._replace(label="") for key in always]
    room = width - sum(key.width + BETWEEN for key in right)
    left: list[FooterKey] = []
    for key in keys:
        if key.width <= room:
            left.append(key)
            room -= key.width + BETWEEN
    return left, right


class KeyFooter(BaseWidget):
    DEFAULT_CSS = """
    KeyFooter { height: 1; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[list[FooterKey], list[FooterKey]] = [], []
        self._places: list[tuple[int, int, str]] = []
        """Begin and end of each key on the line."""
        self._known: dict[tuple[str, ...], tuple[list[FooterKey], list[FooterKey]]] = {}
        """State → keys, until other bindings are active."""
        self._is_stale = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._outdate)

    def _outdate(self, screen: Screen[object]) -> None:
        # Only once for several changes, and after the focus has changed.
        if not self._is_stale and self.is_attached:
            self._is_stale = True
            self.call_after_refresh(self._update)

    def _update(self) -> None:
        self._is_stale = False
        self._known.clear()
        if self.is_attached and self.screen.is_current:
            self.show_state()

    def show_state(self) -> None:
        """Show the keys of the screen's state, if only that has changed: in the same frame as the row."""
        screen = self.screen
        states = () if isinstance(screen.focused, Input) else getattr(screen, "footer", ())
        if (keys := self._known.get(states)) is None:
            keys = self._known[states] = footer_keys(screen.active_bindings, states)
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    @property
    def text(self) -> str:
        return self.render_line(0).text

    def render_line(self, y: int) -> Strip:
        width = self.outer_size.width
        left, right = fitting(*self._keys, width - 2)
        pieces: list[Piece] = [(" ", None)]
        self._places, at = [], 1
        room = width - 2 - sum(key.width + BETWEEN for key in [*left, *right]) + BETWEEN
        for place, key in enumerate([*left, *right]):
            if place == len(left) and left:
                pieces.append((" " * room, None))
                at += room
            self._places.append((at, at + key.width, key.key))
            pieces += [
                (key.shown, "key"),
                (f" {key.label}" if key.label else "", None),
                (" " * BETWEEN, None),
            ]
            at += key.width + BETWEEN
        return Strip(self.paint(pieces, width), width)

    def on_click(self, event: events.Click) -> None:
        key = next((key for begin, end, key in self._places if begin <= event.x < end), None)
        if key is not None:
            self.app.simulate_key(key)
