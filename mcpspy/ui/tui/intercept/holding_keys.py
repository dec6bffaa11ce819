"""The keys of messages that are held. On any other row they are what they are there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from textual.binding import Binding, BindingType

from mcpspy.ui.tui.session.session_keys import key

_key = partial(key, "held")

KEYS: list[BindingType] = [
    _key("enter", "decide('edit')", "a held message: edit it, then let it go on", "edit", "edit"),
    _key("a", "decide('accept')", "a held message: let it go on as it came", "accept", "accept"),
    _key("A", "accept_all", "let all held messages go on, in their order", "accept-all", "all"),
    _key("d", "decide('drop')", "a held message: drop it", "drop", "drop"),
    _key("e", "decide('refuse')", "a held request: answer it with an error", "answer", "answer"),
    _key("H", "next_held", "go to the next held message", "next", "held"),
]


def before(keys: Iterable[BindingType]) -> list[BindingType]:
    """Return a screen's keys with each of these before what has its key: the first that is for a row counts."""
    merged: list[BindingType] = []
    for binding in keys:
        assert isinstance(binding, Binding)
        own = binding.key.split(",")
        merged += [*(held for held in KEYS if isinstance(held, Binding) and held.key in own), binding]
    return [*merged, *(held for held in KEYS if held not in merged)]
