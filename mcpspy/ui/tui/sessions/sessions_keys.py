"""The keys of the sessions' screen, each with a name under which it can be given another."""

from __future__ import annotations

from functools import partial

from textual.binding import Binding, BindingType

from mcpspy.ui.tui.session.session_keys import help_key, key

_key = partial(key, "sessions")

KEYS: list[BindingType] = [
    _key("enter", "open", "look into it, or into all that are marked", "open", "open"),
    _key("slash", "filter", "filter the sessions", "filter", "filter"),
    _key(
        "d",
        "diff",
        "diff: compare it with another, on which d is pressed next; or the two that are marked",
        "diff",
        "diff",
    ),
    _key("delete,backspace", "delete", "delete it, or all that are marked; asks first", "delete", "delete"),
    _key("c", "copy_path", "copy the path of its file", "copy-path", "copy path"),
    _key("y", "copy_command", "copy the command that prints it", "copy-command"),
    _key("r", "again", "look at every file again", "again"),
    _key("D", "demo", "record a sample session", "demo"),
    help_key("sessions"),
    _key("escape", "forget", "compare it with nothing", "forget", "forget"),
    _key("escape", "leave", "drop the filter, then the marks", "leave"),
    Binding("q", "app.quit", "quit", tooltip="quit", id="sessions.quit"),
]
