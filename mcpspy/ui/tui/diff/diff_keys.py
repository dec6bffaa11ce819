"""The keys of the difference, each with a name under which it can be given another."""

from __future__ import annotations

from functools import partial

from textual.binding import BindingType

from mcpspy.ui.tui.session.session_keys import help_key, key

_key = partial(key, "diff")

KEYS: list[BindingType] = [
    _key(
        "enter",
        "open('new')",
        "go to it in the new session; to what only the old one has, there",
        "open",
        "open",
    ),
    _key("o", "open('old')", "go to it in the old session", "open-old", "old"),
    _key("n", "change(1)", "next change", "next", "next"),
    _key("N", "change(-1)", "previous change", "previous"),
    _key(
        "slash", "filter", "filter the changes: words that are in them, -word that is not", "filter", "filter"
    ),
    _key("S", "reverse", "swap the two: what was new is old", "reverse", "swap"),
    _key("t", "dates", "texts that differ only in dates and times are the same, or not", "dates", "dates"),
    _key("r", "again", "read both again", "again"),
    _key("y", "copy", "copy the value on this line, whole; else the line", "copy", "copy"),
    help_key("diff"),
    _key("escape", "leave", "drop the filter, then go back", "leave"),
    _key("q", "back", "back", "back", "back"),
]
