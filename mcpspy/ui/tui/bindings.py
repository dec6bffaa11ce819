"""The key bindings of every screen, and the user's key settings.

Each binding has an id under which `mcpspy.toml` can assign other keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from textual.binding import Binding, BindingType

from mcpspy.errors import UsageError


def key(  # noqa: PLR0917 - A table of keys reads better by columns.
    screen: str, keys: str, action: str, tooltip: str, name: str, label: str = ""
) -> Binding:
    """Return a key of a screen; the footer shows only keys with a label."""
    return Binding(keys, action, label or tooltip, show=bool(label), tooltip=tooltip, id=f"{screen}.{name}")


def help_key(screen: str) -> Binding:
    return Binding(
        "question_mark", "app.help", "help", key_display="?", tooltip="this page", id=f"{screen}.help"
    )


_session_key = partial(key, "session")

SESSION_KEYS: list[BindingType] = [
    _session_key("tab,shift+tab,enter", "swap", "from the list to the message, and back", "swap", "pane"),
    _session_key("slash", "filter", "filter the rows", "filter", "filter"),
    _session_key("F", "filter_off", "put the filter aside, or in force again", "filter-off"),
    _session_key("f", "follow", "go to the end, and follow what comes", "follow", "follow"),
    _session_key("e", "error(1)", "next error, or odd message", "next-error", "error"),
    _session_key("E", "error(-1)", "previous one", "previous-error"),
    _session_key("w", "finding(1)", "next finding of lint", "next-finding"),
    _session_key("W", "finding(-1)", "previous one", "previous-finding"),
    _session_key("p", "other", "from a request to its answer, and back; from progress to its call", "pair"),
    _session_key("right_square_bracket", "same(1)", "next of the same tool, or method", "next-same"),
    _session_key("left_square_bracket", "same(-1)", "previous one", "previous-same"),
    _session_key("full_stop", "chain(1)", "to the request that answers its question", "next-in-chain"),
    _session_key("comma", "chain(-1)", "to the request whose question it answers", "previous-in-chain"),
    _session_key(
        "v", "change_view('exchanges')", "one row an exchange, or one row a message", "wire", "view"
    ),
    _session_key("o", "change_view('notifications')", "show notifications, or hide them", "notifications"),
    _session_key("a", "change_view('events')", "show stderr and other asides, or hide them", "asides"),
    _session_key("h", "change_view('http')", "show the HTTP exchanges, or hide them", "http"),
    _session_key("t", "time", "time since the start, of day, since the row above", "time"),
    _session_key("s", "change_view('order')", "sort by latency, by size, by time", "sort"),
    _session_key("S", "change_view('reverse')", "turn the order around", "reverse"),
    _session_key("m", "mark", "mark the row", "mark"),
    _session_key("semicolon", "show('note')", "write a note on the row", "note"),
    _session_key("u", "marked(1)", "next marked row", "next-mark"),
    _session_key("U", "marked(-1)", "previous one", "previous-mark"),
    _session_key("M", "only_marked", "show marked rows only", "only-marked"),
    _session_key(
        "d",
        "show('diff')",
        "diff: what differs from the marked exchange, else from the one before like it",
        "diff",
        "diff",
    ),
    _session_key("L", "show('timeline')", "timeline: which calls overlapped", "timeline"),
    _session_key(
        "number_sign", "show('numbers')", "numbers: calls, errors and latencies of each tool", "numbers"
    ),
    _session_key("I", "show('server')", "the server: what it can do, and what it lists", "server"),
    _session_key(
        "i", "held('hold')", "hold what the filter wants, from now on; or nothing any more", "hold", "hold"
    ),
    _session_key("r", "resend(False)", "send the request again, into the running session", "resend"),
    _session_key("R", "resend(True)", "edit the request, then send it", "resend-edited"),
    _session_key("x", "show('export')", "save the marked rows, else all that are shown", "export"),
    _session_key("1", "view('pretty')", "the message as JSON, laid out", "pretty"),
    _session_key("2", "view('text')", "what it says, as text", "text"),
    _session_key("3", "view('raw')", "its exact bytes", "raw"),
    _session_key("4", "view('headers')", "the heads of its HTTP exchange", "headers"),
    _session_key("y", "copy", "copy the message", "copy", "copy"),
    _session_key("Y", "copy_command", "copy the command that prints these rows", "copy-command"),
    _session_key("z", "zoom", "give this pane all the room, or share it again", "zoom"),
    help_key("session"),
    _session_key("escape", "leave", "leave the zoom, the message, the filter, the session", "leave"),
    _session_key("q", "back", "back to the sessions", "back", "back"),
]


_sessions_key = partial(key, "sessions")

SESSIONS_KEYS: list[BindingType] = [
    _sessions_key("enter", "open", "look into it, or into all that are marked", "open", "open"),
    _sessions_key("slash", "filter", "filter the sessions", "filter", "filter"),
    _sessions_key(
        "d",
        "diff",
        "diff: compare it with another, on which d is pressed next; or the two that are marked",
        "diff",
        "diff",
    ),
    _sessions_key(
        "delete,backspace", "delete", "delete it, or all that are marked; asks first", "delete", "delete"
    ),
    _sessions_key("c", "copy_path", "copy the path of its file", "copy-path", "copy path"),
    _sessions_key("y", "copy_command", "copy the command that prints it", "copy-command"),
    _sessions_key("r", "reload", "look at every file again", "again"),
    _sessions_key("D", "demo", "record a sample session", "demo"),
    help_key("sessions"),
    _sessions_key("escape", "forget", "compare it with nothing", "forget", "forget"),
    _sessions_key("escape", "leave", "drop the filter, then the marks", "leave"),
    Binding("q", "app.quit", "quit", tooltip="quit", id="sessions.quit"),
]


DETAIL_KEYS: list[BindingType] = [
    Binding("down,j", "move(1)", "a line down", show=False, id="detail.down"),
    Binding("up,k", "move(-1)", "a line up", show=False, id="detail.up"),
    Binding("pagedown", "page(1)", "a page down", show=False, id="detail.page-down"),
    Binding("pageup", "page(-1)", "a page up", show=False, id="detail.page-up"),
    Binding("home,g", "top", "first line", show=False, id="detail.top"),
    Binding("end,G", "bottom", "last line", show=False, id="detail.bottom"),
    Binding("1", "view('pretty')", "pretty: the JSON, laid out", show=False, id="detail.pretty"),
    Binding("2", "view('text')", "text: what it says", show=False, id="detail.text"),
    Binding("3", "view('raw')", "raw: its bytes", show=False, id="detail.raw"),
    Binding("4", "view('headers')", "headers: of its HTTP exchange", show=False, id="detail.headers"),
    Binding("space", "toggle_fold", "fold or unfold", show=False, id="detail.toggle"),
    Binding("left,h", "fold", "fold, or go to what is around", show=False, id="detail.fold"),
    Binding("right,l", "unfold", "unfold", show=False, id="detail.unfold"),
    Binding("-", "fold_all(True)", "fold every part", show=False, id="detail.fold-all"),
    Binding("+,=", "fold_all(False)", "unfold all", show=False, id="detail.unfold-all"),
    Binding("o", "open", "open the text of a string; esc closes it", show=False, id="detail.open"),
    Binding("ctrl+f", "search", "search in the message", show=False, id="detail.search"),
    Binding("n", "next(1)", "next hit", show=False, id="detail.next"),
    Binding("N", "next(-1)", "previous hit", show=False, id="detail.previous"),
    Binding("c", "copy_value", "copy the value", show=False, id="detail.copy-value"),
    Binding("C", "copy_path", "copy its path, a JSON pointer", show=False, id="detail.copy-path"),
    Binding("\\", "beside", "side by side, or stacked", show=False, id="detail.beside"),
    Binding("s", "other", "from the request to the response, and back", show=False, id="detail.other"),
    Binding("escape", "close", "leave the string, the search", show=False, id="detail.close"),
]


_diff_key = partial(key, "diff")

DIFF_KEYS: list[BindingType] = [
    _diff_key(
        "enter",
        "open('new')",
        "go to it in the new session; to what only the old one has, there",
        "open",
        "open",
    ),
    _diff_key("o", "open('old')", "go to it in the old session", "open-old", "old"),
    _diff_key("n", "change(1)", "next change", "next", "next"),
    _diff_key("N", "change(-1)", "previous change", "previous"),
    _diff_key(
        "slash", "filter", "filter the changes: words that are in them, -word that is not", "filter", "filter"
    ),
    _diff_key("S", "reverse", "swap the two: what was new is old", "reverse", "swap"),
    _diff_key(
        "t", "dates", "texts that differ only in dates and times are the same, or not", "dates", "dates"
    ),
    _diff_key("r", "reload", "read both again", "again"),
    _diff_key("y", "copy", "copy the value on this line, whole; else the line", "copy", "copy"),
    help_key("diff"),
    _diff_key("escape", "leave", "drop the filter, then go back", "leave"),
    _diff_key("q", "back", "back", "back", "back"),
]


_intercept_key = partial(key, "held")

INTERCEPT_KEYS: list[BindingType] = [
    _intercept_key("enter", "held('edit')", "a held message: edit it, then let it go on", "edit", "edit"),
    _intercept_key("a", "held('accept')", "a held message: let it go on as it came", "accept", "accept"),
    _intercept_key(
        "A", "held('accept_all')", "let all held messages go on, in their order", "accept-all", "all"
    ),
    _intercept_key("d", "held('drop')", "a held message: drop it", "drop", "drop"),
    _intercept_key("e", "held('refuse')", "a held request: answer it with an error", "answer", "answer"),
    _intercept_key("H", "held('next')", "go to the next held message", "next", "held"),
]


def before(keys: Iterable[BindingType]) -> list[BindingType]:
    """Return a screen's keys, each after the interception keys that share it: the first applicable one wins."""
    merged: list[BindingType] = []
    for binding in keys:
        assert isinstance(binding, Binding)
        own = binding.key.split(",")
        merged += [
            *(held for held in INTERCEPT_KEYS if isinstance(held, Binding) and held.key in own),
            binding,
        ]
    return [*merged, *(held for held in INTERCEPT_KEYS if held not in merged)]


def names(tables: Iterable[Iterable[BindingType]]) -> set[str]:
    return {
        binding.id for table in tables for binding in table if isinstance(binding, Binding) and binding.id
    }


def checked(chosen: Mapping[str, Any], known: set[str]) -> dict[str, str]:
    """Return the user's keys by binding id; raise UsageError for an unknown id or a value that is not text."""
    for name, keys in chosen.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "docs/tui.md lists the names"
            raise UsageError(f"keys: {name!r} is no name of a key", hint)
        if not isinstance(keys, str) or not keys.strip(", "):
            raise UsageError(f'keys: "{name}" takes keys as text', f'"{name}" = "ctrl+x,x"')
    return dict(chosen)


def in_force(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> list[Binding]:
    return [
        binding.with_key(chosen[binding.id]) if binding.id and binding.id in chosen else binding
        for binding in bindings
        if isinstance(binding, Binding)
    ]
