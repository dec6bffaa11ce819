"""The keys of the session's screen, each with a name under which it can be given another."""

from __future__ import annotations

from functools import partial

from textual.binding import Binding, BindingType


def key(  # noqa: PLR0917 - A table of keys reads better by columns.
    screen: str, keys: str, action: str, tooltip: str, name: str, label: str = ""
) -> Binding:
    """Return a key of a screen; only one with a label is in the last line."""
    return Binding(keys, action, label or tooltip, show=bool(label), tooltip=tooltip, id=f"{screen}.{name}")


def help_key(screen: str) -> Binding:
    """Return the key that opens the list of keys."""
    return Binding(
        "question_mark", "app.help", "help", key_display="?", tooltip="this page", id=f"{screen}.help"
    )


_key = partial(key, "session")

KEYS: list[BindingType] = [
    _key("tab,shift+tab,enter", "swap", "from the list to the message, and back", "swap", "pane"),
    _key("slash", "filter", "filter the rows", "filter", "filter"),
    _key("F", "filter_off", "put the filter aside, or in force again", "filter-off"),
    _key("f", "follow", "go to the end, and follow what comes", "follow", "follow"),
    _key("e", "wrong(1)", "next error, or odd message", "next-error", "error"),
    _key("E", "wrong(-1)", "previous one", "previous-error"),
    _key("w", "finding(1)", "next finding of lint", "next-finding"),
    _key("W", "finding(-1)", "previous one", "previous-finding"),
    _key("p", "other", "from a request to its answer, and back; from progress to its call", "pair"),
    _key("right_square_bracket", "same(1)", "next of the same tool, or method", "next-same"),
    _key("left_square_bracket", "same(-1)", "previous one", "previous-same"),
    _key("full_stop", "chain(1)", "to the request that answers its question", "next-in-chain"),
    _key("comma", "chain(-1)", "to the request whose question it answers", "previous-in-chain"),
    _key("v", "turn('exchanges')", "one row an exchange, or one row a message", "wire", "view"),
    _key("o", "turn('notifications')", "show notifications, or hide them", "notifications"),
    _key("a", "turn('asides')", "show stderr and other asides, or hide them", "asides"),
    _key("h", "turn('http')", "show the HTTP exchanges, or hide them", "http"),
    _key("t", "time", "time since the start, of day, since the row above", "time"),
    _key("s", "turn('order')", "sort by latency, by size, by time", "sort"),
    _key("S", "turn('reverse')", "turn the order around", "reverse"),
    _key("m", "mark", "mark the row", "mark"),
    _key("semicolon", "over('note')", "write a note on the row", "note"),
    _key("u", "marked(1)", "next marked row", "next-mark"),
    _key("U", "marked(-1)", "previous one", "previous-mark"),
    _key("M", "only_marked", "show marked rows only", "only-marked"),
    _key(
        "d",
        "over('diff')",
        "diff: what differs from the marked exchange, else from the one before like it",
        "diff",
        "diff",
    ),
    _key("L", "over('timeline')", "timeline: which calls overlapped", "timeline"),
    _key("number_sign", "over('numbers')", "numbers: calls, errors and latencies of each tool", "numbers"),
    _key("I", "over('server')", "the server: what it can do, and what it lists", "server"),
    _key("i", "hold", "hold what the filter wants, from now on; or nothing any more", "hold", "hold"),
    _key("r", "resend(False)", "send the request again, into the running session", "resend"),
    _key("R", "resend(True)", "edit the request, then send it", "resend-edited"),
    _key("x", "over('export')", "save the marked rows, else all that are shown", "export"),
    _key("1", "view('pretty')", "the message as JSON, laid out", "pretty"),
    _key("2", "view('text')", "what it says, as text", "text"),
    _key("3", "view('raw')", "its exact bytes", "raw"),
    _key("4", "view('headers')", "the heads of its HTTP exchange", "headers"),
    _key("y", "copy", "copy the message", "copy", "copy"),
    _key("Y", "copy_command", "copy the command that prints these rows", "copy-command"),
    _key("z", "zoom", "give this pane all the room, or share it again", "zoom"),
    help_key("session"),
    _key("escape", "leave", "leave the zoom, the message, the filter, the session", "leave"),
    _key("q", "back", "back to the sessions", "back", "back"),
]
