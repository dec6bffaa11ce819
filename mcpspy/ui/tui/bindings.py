"""The key bindings of every screen, and the user's key settings.

Each binding has an id by which `mcpspy.toml` can assign other keys to it.
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
    """Return the binding of a key on a screen; the footer shows only bindings with a label."""
    return Binding(keys, action, label or tooltip, show=bool(label), tooltip=tooltip, id=f"{screen}.{name}")


def help_key(screen: str) -> Binding:
    return Binding("question_mark,f1", "app.help", "help", tooltip="show help", id=f"{screen}.help")


_session_key = partial(key, "session")

SESSION_KEYS: list[BindingType] = [
    _session_key("enter,tab,shift+tab", "swap", "switch between list and message", "swap", "message"),
    _session_key("f", "follow", "go to the end and follow new rows", "follow", "follow"),
    _session_key("slash", "filter", "filter rows", "filter", "filter"),
    _session_key("F", "filter_off", "toggle filter", "filter-off"),
    _session_key("n", "match(1)", "next row that matches the filter", "next-match"),
    _session_key("N", "match(-1)", "previous row that matches the filter", "previous-match"),
    _session_key("e", "error(1)", "next error or protocol issue", "next-error", "error"),
    _session_key("E", "error(-1)", "previous error or protocol issue", "previous-error"),
    _session_key("w", "finding(1)", "next lint finding", "next-finding"),
    _session_key("W", "finding(-1)", "previous lint finding", "previous-finding"),
    _session_key("P", "problems", "problems: errors, slow, unanswered, stderr", "problems", "problems"),
    _session_key("b", "show('cause')", "the cause of what is on this row (because …)", "cause", "cause"),
    _session_key(
        "B", "show('explanation')", "explain the session: causes, evidence, next steps", "explain", "explain"
    ),
    _session_key("p", "other", "go to the matching request or response", "pair"),
    _session_key("right_square_bracket", "same(1)", "next call of the same tool or method", "next-same"),
    _session_key(
        "left_square_bracket", "same(-1)", "previous call of the same tool or method", "previous-same"
    ),
    _session_key(
        "full_stop",
        "chain(1)",
        "next request in an input_required chain, or the page of a call (MCP Apps)",
        "next-in-chain",
    ),
    _session_key(
        "comma",
        "chain(-1)",
        "previous request in an input_required chain, or the call of a page",
        "previous-in-chain",
    ),
    _session_key("v", "change_view('exchanges')", "switch between exchanges and messages", "wire", "view"),
    _session_key("V", "show('rows')", "choose rows: notifications, stderr and events, HTTP", "rows", "rows"),
    _session_key("V n", "change_view('notifications')", "toggle notifications", "notifications"),
    _session_key("V e", "change_view('events')", "toggle stderr and events", "asides"),
    _session_key("V h", "change_view('http')", "toggle HTTP exchanges", "http"),
    _session_key("t", "time", "cycle time format: relative, absolute, delta", "time"),
    _session_key("s", "change_view('order')", "cycle sort order: time, latency, size", "sort"),
    _session_key("S", "change_view('reverse')", "reverse sort order", "reverse"),
    _session_key("m", "mark", "mark or unmark row", "mark"),
    _session_key("semicolon", "show('note')", "edit note on row", "note"),
    _session_key("u", "marked(1)", "next marked row", "next-mark"),
    _session_key("U", "marked(-1)", "previous marked row", "previous-mark"),
    _session_key("M", "only_marked", "toggle marked rows only", "only-marked"),
    _session_key(
        "d",
        "show('diff')",
        "diff with marked or previous similar exchange",
        "diff",
        "diff",
    ),
    _session_key("L", "show('timeline')", "timeline", "timeline"),
    _session_key("number_sign", "show('numbers')", "statistics", "numbers"),
    _session_key("I", "show('server')", "server info and capabilities", "server"),
    _session_key("O", "run", "open the run of this session; in a run, the session of this row", "run"),
    _session_key("i", "held('hold')", "intercept messages that match the filter (toggle)", "hold", "hold"),
    _session_key("r", "resend(False)", "resend request into the live session", "resend"),
    _session_key("R", "resend(True)", "edit and resend request", "resend-edited"),
    _session_key(
        "left_parenthesis", "call", "call a tool, with a form of its arguments", "call", "call tool"
    ),
    _session_key("ctrl+r", "restart", "restart the server of a session of run or http --watch", "restart"),
    _session_key(
        "greater_than_sign",
        "replay('')",
        "replay marked rows, or what is shown, against a server",
        "replay",
        "replay",
    ),
    _session_key("greater_than_sign s", "replay('session')", "replay this session", "replay-session"),
    _session_key(
        "greater_than_sign c", "replay('call')", "replay this call, and what it depends on", "replay-call"
    ),
    _session_key("greater_than_sign w", "replay('shown')", "replay what is shown", "replay-shown"),
    _session_key("1", "view('pretty')", "pretty view: formatted JSON", "pretty"),
    _session_key("2", "view('text')", "text view: message content", "text"),
    _session_key("3", "view('raw')", "raw view: exact bytes", "raw"),
    _session_key("4", "view('headers')", "headers view: HTTP headers", "headers"),
    _session_key("x", "show('export')", "export marked rows, or all shown rows", "export"),
    _session_key("y", "copy", "copy message", "copy", "copy"),
    _session_key("Y", "copy_command", "copy mcpspy show command", "copy-command"),
    _session_key("z", "zoom", "toggle zoom of this pane", "zoom"),
    _session_key("less_than_sign", "serve", "serve this session: a mock for clients", "serve"),
    help_key("session"),
    _session_key("escape", "leave", "leave zoom, message, problems, filter, then session", "leave"),
    _session_key("q", "back", "back to session list", "back", "back"),
]


_sessions_key = partial(key, "sessions")

SESSIONS_KEYS: list[BindingType] = [
    _sessions_key("enter", "open", "open session, or all marked sessions", "open", "open"),
    _sessions_key("slash", "filter", "filter sessions", "filter", "filter"),
    _sessions_key("e", "open('first_error')", "open session at its first error", "error", "error"),
    _sessions_key("P", "open('problems')", "open problems of session", "problems", "problems"),
    _sessions_key("L", "open(\"show('timeline')\")", "open timeline of session", "timeline", "timeline"),
    _sessions_key("number_sign", "open(\"show('numbers')\")", "open statistics of session", "numbers"),
    _sessions_key("I", "open(\"show('server')\")", "open capabilities of session", "server", "tools"),
    _sessions_key("O", "run", "open the run of session: all servers of its host", "run", "run"),
    _sessions_key(
        "greater_than_sign",
        "open(\"replay('session')\")",
        "replay this session against a server",
        "replay",
        "replay",
    ),
    _sessions_key("d", "diff", "diff two sessions: press d on each, or mark both", "diff", "diff"),
    _sessions_key(
        "delete,backspace",
        "delete",
        "delete session, or all marked sessions (asks first)",
        "delete",
        "delete",
    ),
    _sessions_key("C", "copy_path", "copy file path", "copy-path", "copy path"),
    _sessions_key("Y", "copy_command", "copy mcpspy show command", "copy-command"),
    _sessions_key("ctrl+r", "reload", "reload all sessions", "again"),
    _sessions_key(
        "left_parenthesis", "call", "call a tool of this session's server, or of another", "call", "call tool"
    ),
    _sessions_key("less_than_sign", "serve", "serve session: a mock for clients", "serve", "serve"),
    _sessions_key("D", "demo", "record a demo session", "demo"),
    help_key("sessions"),
    _sessions_key("escape", "forget", "cancel diff", "forget", "cancel diff"),
    _sessions_key("escape", "leave", "clear filter, then marks", "leave"),
    Binding("q", "app.quit", "quit", tooltip="quit", id="sessions.quit"),
]


DETAIL_KEYS: list[BindingType] = [
    Binding("down,j", "move(1)", "line down", show=False, id="detail.down"),
    Binding("up,k", "move(-1)", "line up", show=False, id="detail.up"),
    Binding("pagedown", "page(1)", "page down", show=False, id="detail.page-down"),
    Binding("pageup", "page(-1)", "page up", show=False, id="detail.page-up"),
    Binding("home,g", "top", "first line", show=False, id="detail.top"),
    Binding("end,G", "bottom", "last line", show=False, id="detail.bottom"),
    Binding("1", "view('pretty')", "pretty view: formatted JSON", show=False, id="detail.pretty"),
    Binding("2", "view('text')", "text view: message content", show=False, id="detail.text"),
    Binding("3", "view('raw')", "raw view: exact bytes", show=False, id="detail.raw"),
    Binding("4", "view('headers')", "headers view: HTTP headers", show=False, id="detail.headers"),
    Binding("space", "toggle_fold", "toggle fold", show=False, id="detail.toggle"),
    Binding("left,h", "fold", "fold, or go to parent", show=False, id="detail.fold"),
    Binding("right,l", "unfold", "unfold", show=False, id="detail.unfold"),
    Binding("-", "fold_all(True)", "fold all", show=False, id="detail.fold-all"),
    Binding("+,=", "fold_all(False)", "unfold all", show=False, id="detail.unfold-all"),
    Binding("o", "open", "open string value (esc closes)", show=False, id="detail.open"),
    Binding("ctrl+f", "search", "search message", show=False, id="detail.search"),
    Binding("n", "next(1)", "next match", show=False, id="detail.next"),
    Binding("N", "next(-1)", "previous match", show=False, id="detail.previous"),
    Binding("c", "copy_value", "copy value", show=False, id="detail.copy-value"),
    Binding("C", "copy_path", "copy path (JSON Pointer)", show=False, id="detail.copy-path"),
    Binding("\\", "beside", "toggle side by side", show=False, id="detail.beside"),
    Binding("p", "other", "switch between request and response", show=False, id="detail.other"),
    Binding("escape", "close", "close string or search", show=False, id="detail.close"),
]


_diff_key = partial(key, "diff")

DIFF_KEYS: list[BindingType] = [
    _diff_key("enter", "open('new')", "open in new session (in old, if only there)", "open", "open"),
    _diff_key("o", "open('old')", "open in old session", "open-old", "open old"),
    _diff_key("n", "change(1)", "next change", "next", "next"),
    _diff_key("N", "change(-1)", "previous change", "previous"),
    _diff_key("slash", "filter", "filter changes by words (-word excludes)", "filter", "filter"),
    _diff_key("S", "reverse", "swap old and new", "reverse", "swap"),
    _diff_key("t", "dates", "ignore or show differences in dates and times", "dates", "dates"),
    _diff_key("v", "volatile", "ignore or show values that change from run to run", "volatile"),
    _diff_key("ctrl+r", "reload", "reload both", "again"),
    _diff_key("y", "copy", "copy whole value, or line", "copy", "copy"),
    help_key("diff"),
    _diff_key("escape", "leave", "clear filter, then go back", "leave"),
    _diff_key("q", "back", "back", "back", "back"),
]


_mock_key = partial(key, "mock")

MOCK_KEYS: list[BindingType] = [
    _mock_key("enter,tab,shift+tab", "swap", "switch between list and message", "swap"),
    _mock_key("i", "pause", "pause: let requests wait (toggle)", "pause", "pause"),
    _mock_key("a", "release", "answer the waiting request as recorded", "release"),
    _mock_key("A", "release_all", "answer all waiting requests as recorded, in order", "release-all"),
    _mock_key(
        "exclamation_mark",
        "refuse",
        "answer with an error: the waiting or next request, or each that gets this recorded one",
        "refuse",
        "error",
    ),
    _mock_key("t", "delay", "answer later: the same requests", "delay", "delay"),
    _mock_key("R", "edit", "answer with an edited response: the same requests", "edit", "edit"),
    _mock_key("delete,backspace", "forget", "take back the answers that you set", "forget"),
    _mock_key("n", "misses", "change what misses get: error, nearest, the real server", "misses", "misses"),
    _mock_key("m", "match", "change the matching mode", "match", "match"),
    _mock_key("minus", "speed(-1)", "slower", "slower"),
    _mock_key("plus,equals_sign", "speed(1)", "faster; at once after the fastest", "faster"),
    _mock_key(
        "c", "connect", "show how clients connect: URL, command, entry of a host", "connect", "connect"
    ),
    _mock_key("y", "copy_url", "copy the URL", "copy-url"),
    _mock_key("v", "view", "next list: requests, recorded interactions, clients", "view", "view"),
    _mock_key("p", "pair", "go from a request to its recorded interaction", "pair"),
    _mock_key("f", "follow", "go to the last request and follow", "follow"),
    _mock_key("w", "save", "save the recording with the responses that you edited", "save"),
    _mock_key(
        "O", "session", "open the session that the mock records, at this request", "session", "session"
    ),
    help_key("mock"),
    _mock_key("escape", "leave", "back to the list", "leave"),
    _mock_key("q", "stop", "stop serving, and go back", "stop", "stop"),
]


_replay_key = partial(key, "replay")

REPLAY_KEYS: list[BindingType] = [
    _replay_key("enter,tab,shift+tab", "swap", "switch between steps and messages", "swap"),
    _replay_key("space", "pause", "pause, or continue", "pause", "pause"),
    _replay_key("s", "step", "send one request, then pause", "step", "step"),
    _replay_key("S", "skip", "skip the next request", "skip", "skip"),
    _replay_key("e", "edit", "edit the next request, then send it", "edit", "edit"),
    _replay_key("r", "again", "send this request again", "again", "send again"),
    _replay_key("X", "stop", "stop the replay", "stop", "stop"),
    _replay_key("n", "change(1)", "next difference", "next", "next"),
    _replay_key("N", "change(-1)", "previous difference", "previous"),
    _replay_key("i", "ignore", "ignore this difference from here on", "ignore", "ignore"),
    _replay_key("u", "unignore", "take back the last ignored difference", "unignore"),
    _replay_key("f", "follow", "follow the replay", "follow"),
    _replay_key("L", "output", "stderr of the server, and warnings", "output", "stderr"),
    _replay_key("w", "save", "save the new session", "save", "save"),
    _replay_key("x", "report", "save a report: HTML, JUnit or Markdown", "report", "report"),
    _replay_key(
        "U", "update", "make the new session the baseline (keeps the old one as .bak)", "update", "baseline"
    ),
    _replay_key("K", "keep", "keep the ignored values in mcpspy.toml", "keep", "keep ignored"),
    _replay_key(
        "Y", "copy_command", "copy the command that replays the same", "copy-command", "copy command"
    ),
    _replay_key("R", "repeat", "replay again, with other options", "repeat", "again"),
    _replay_key("z", "zoom", "toggle zoom of this pane", "zoom"),
    help_key("replay"),
    _replay_key("escape", "leave", "leave zoom, message, then the replay", "leave"),
    _replay_key("q", "back", "end the replay, and go back", "back", "back"),
]


_load_key = partial(key, "load")

LOAD_KEYS: list[BindingType] = [
    _load_key("X", "stop", "stop the load test", "stop", "stop"),
    _load_key("x", "report", "save a report: HTML, JSON or CSV", "report", "report"),
    _load_key("Y", "copy_command", "copy the command that does the same", "copy-command", "copy command"),
    _load_key("R", "repeat", "test again, with other options", "repeat", "again"),
    help_key("load"),
    _load_key("q,escape", "back", "end the load test, and go back", "back", "back"),
]


_intercept_key = partial(key, "held")

INTERCEPT_KEYS: list[BindingType] = [
    _intercept_key("enter", "held('edit')", "edit held message, then forward it", "edit", "edit"),
    _intercept_key("a", "held('accept')", "forward held message unchanged", "accept", "forward"),
    _intercept_key(
        "A", "held('accept_all')", "forward all held messages, in order", "accept-all", "forward all"
    ),
    _intercept_key("X", "held('drop')", "drop held message", "drop", "drop"),
    _intercept_key(
        "exclamation_mark", "held('refuse')", "answer held request with an error", "answer", "answer"
    ),
    _intercept_key("H", "held('next')", "next held message", "next", "held"),
]


GROUPS = {
    "session.swap": "move",
    "session.filter": "find",
    "session.wire": "rows and order",
    "session.mark": "mark and compare",
    "session.timeline": "overviews",
    "session.hold": "live session",
    "session.pretty": "message views",
    "session.export": "export and copy",
    "session.zoom": "screen",
    "sessions.delete": "sessions: files",
    "sessions.help": "screen",
    "replay.swap": "move",
    "replay.pause": "the replay",
    "replay.next": "differences",
    "replay.save": "results",
    "replay.zoom": "screen",
    "detail.pretty": "message: views",
    "detail.toggle": "message: folds",
    "detail.open": "message: search and copy",
}
"""Id of the first binding of a group → heading of the group in the help; it ends where the next one begins."""

_MAIN = {
    "session.swap": "open",
    "session.next-error": "error",
    "session.problems": "problems",
    "session.sort": "sort",
    "session.server": "tools",
}

FOOTERS: dict[str, dict[str, str]] = {
    "held": {
        "held.edit": "edit",
        "held.accept": "forward",
        "held.drop": "drop",
        "held.answer": "answer",
        "held.accept-all": "forward all",
        "held.next": "next",
    },
    "failed": {"session.swap": "why", "session.cause": "cause"},
    "crash": {"session.cause": "cause"},
    "problems": {"session.problems": "all rows"},
    "finding": {"session.swap": "why", "session.next-finding": "lint"},
    "request": {"session.swap": "open", "session.resend session.resend-edited": "resend", **_MAIN},
    "message": {
        "session.swap": "list",
        "detail.close": "close",
        "detail.other": "pair",
        "detail.search": "search",
        "detail.toggle": "fold",
        "detail.open": "open string",
        "detail.copy-value": "copy value",
        "detail.copy-path": "copy path",
        "session.zoom": "zoom",
        "detail.next detail.previous": "matches",
        "detail.text": "text",
        "detail.raw": "raw",
        "detail.beside": "side by side",
    },
    "watched": {"session.restart": "restart"},
    "live": {
        **_MAIN,
        "session.filter": "filter",
        "session.hold": "intercept",
        "session.call": "call tool",
        "session.follow": "follow",
    },
    "session": {
        "session.swap": "open",
        "session.filter": "filter",
        **_MAIN,
        "session.rows": "rows",
        "session.back": "back",
        "session.numbers": "statistics",
        "session.timeline": "timeline",
        "session.run": "run",
        "session.explain": "explain",
        "session.replay": "replay",
        "session.diff": "diff",
        "session.export": "export",
        "session.serve": "serve",
        "session.call": "call tool",
        "session.next-finding": "lint",
        "session.wire": "messages",
        "session.copy": "copy",
        "session.mark": "mark",
        "session.zoom": "zoom",
        "session.time": "time",
    },
    "sessions": {
        "sessions.forget": "cancel diff",
        "sessions.open": "open",
        "sessions.filter": "filter",
        "sessions.error": "error",
        "sessions.server": "tools",
        "sessions.run": "run",
        "sessions.replay": "replay",
        "sessions.diff": "diff",
        "sessions.mark": "mark",
        "sessions.serve": "serve",
        "sessions.call": "call tool",
        "sessions.delete": "delete",
        "sessions.problems": "problems",
        "sessions.numbers": "statistics",
        "sessions.timeline": "timeline",
        "sessions.demo": "demo",
        "sessions.quit": "quit",
        "sessions.copy-path": "copy path",
        "sessions.copy-command": "copy command",
        "sessions.again": "reload",
        "app.theme": "light/dark",
    },
    "mock-waiting": {
        "mock.release": "answer",
        "mock.refuse": "error",
        "mock.edit": "edit",
        "mock.delay": "delay",
        "mock.release-all": "answer all",
    },
    "mock": {
        "mock.connect": "connect",
        "mock.pause": "pause",
        "mock.refuse": "error",
        "mock.edit": "edit",
        "mock.delay": "delay",
        "mock.misses": "misses",
        "mock.view": "view",
        "mock.stop": "stop",
        "mock.match": "match",
        "mock.session": "session",
        "mock.save": "save",
    },
    "replay-playing": {
        "replay.pause": "pause",
        "replay.stop": "stop",
        "replay.next": "next",
        "replay.ignore": "ignore",
        "replay.again": "send again",
        "replay.output": "stderr",
        "replay.back": "back",
    },
    "replay-paused": {
        "replay.pause": "continue",
        "replay.step": "step",
        "replay.skip": "skip",
        "replay.edit": "edit",
        "replay.again": "send again",
        "replay.stop": "stop",
        "replay.next": "next",
        "replay.ignore": "ignore",
        "replay.output": "stderr",
        "replay.back": "back",
    },
    "replay-ended": {
        "replay.next": "next",
        "replay.ignore": "ignore",
        "replay.save": "save",
        "replay.report": "report",
        "replay.update": "baseline",
        "replay.keep": "keep ignored",
        "replay.copy-command": "copy command",
        "replay.repeat": "again",
        "replay.back": "back",
        "replay.output": "stderr",
    },
    "load-running": {"load.stop": "stop", "load.copy-command": "copy command", "load.back": "back"},
    "load-ended": {
        "load.report": "report",
        "load.copy-command": "copy command",
        "load.repeat": "again",
        "load.back": "back",
    },
    "replay-failed": {"replay.repeat": "try again", "replay.output": "stderr", "replay.back": "back"},
    "no-sessions": {"sessions.demo": "demo", "sessions.again": "reload", "sessions.quit": "quit"},
}
"""State of a row or session → binding ids → label in the footer, most important first. Other screens need no table:
their footer shows the bindings with a label, in their order."""

SYNONYMS = {
    "app.theme": "dark light colours colors",
    "app.themes": "colours colors",
    "app.quit": "exit",
    "detail.search": "find text grep",
    "detail.copy-path": "json pointer",
    "held.accept": "accept release",
    "held.accept-all": "accept release",
    "held.drop": "discard delete",
    "held.answer": "refuse reject",
    "held.edit": "modify change",
    "session.filter": "search find query grep slow",
    "session.next-error": "failures failed errors",
    "session.previous-error": "failures failed errors",
    "session.next-finding": "warnings rules",
    "session.cause": "why reason explain because failure",
    "session.explain": "why reasons causes diagnosis failure",
    "session.problems": "wrong failures failed pending timeouts crash",
    "session.rows": "show hide logs crash",
    "session.asides": "show hide logs crash",
    "session.notifications": "show hide logs progress",
    "session.http": "show hide headers",
    "session.wire": "raw order",
    "session.sort": "slow slowest largest biggest duration",
    "session.reverse": "slow fastest smallest",
    "session.numbers": "stats metrics latency slow percentiles counts",
    "session.timeline": "waterfall concurrency slow gantt",
    "session.server": "tools resources prompts schemas protocol version",
    "session.hold": "hold pause breakpoint",
    "session.resend": "replay repeat again retry send",
    "session.resend-edited": "replay repeat again retry send change arguments compose",
    "session.replay": "play again regression test compare",
    "session.replay-session": "play again regression test compare",
    "session.replay-call": "play again retry",
    "session.replay-shown": "play again marked filtered",
    "sessions.replay": "play again regression test compare",
    "replay.output": "logs console warnings",
    "replay.update": "accept baseline update overwrite",
    "replay.copy-command": "ci command line shell",
    "session.export": "save write file markdown jsonl",
    "session.diff": "compare",
    "session.mark": "select",
    "session.note": "comment",
    "session.copy": "clipboard yank",
    "session.follow": "tail end",
    "session.zoom": "maximize fullscreen",
    "session.pair": "response request other",
    "sessions.filter": "search find query",
    "sessions.error": "failures failed errors",
    "sessions.problems": "wrong failures failed pending timeouts crash slow stderr",
    "sessions.timeline": "waterfall concurrency slow gantt",
    "sessions.numbers": "stats metrics latency slow percentiles counts",
    "sessions.server": "tools resources prompts schemas protocol version",
    "sessions.run": "agent host servers timeline merge",
    "session.run": "agent host servers timeline merge",
    "sessions.diff": "compare",
    "sessions.again": "refresh",
    "sessions.delete": "remove",
    "sessions.mark": "select",
    "sessions.demo": "example sample",
    "sessions.serve": "mock server replay playback offline",
    "session.serve": "mock server playback offline",
    "session.call": "form invoke run arguments prompt resource",
    "sessions.call": "form invoke run arguments prompt resource host saved",
    "mock.pause": "hold intercept breakpoint",
    "mock.refuse": "fault inject fail",
    "mock.delay": "slow latency wait",
    "mock.misses": "nearest forward passthrough unrecorded",
    "mock.connect": "host url stdio claude cursor config",
    "mock.edit": "change modify result",
}
"""Binding id → further words by which the palette finds the action."""


def before(keys: Iterable[BindingType]) -> list[BindingType]:
    """Return a screen's bindings, each after the interception bindings of the same key: the first applicable one wins."""
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
            hint = f"did you mean {near[0]}?" if near else "see docs/tui.md for the names"
            raise UsageError(f"keys: {name!r}: unknown action", hint)
        if not isinstance(keys, str) or not keys.strip(", "):
            raise UsageError(f"keys: {name!r}: expected keys as text", f'use "{name}" = "ctrl+x,x"')
    return dict(chosen)


def in_force(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> list[Binding]:
    return [
        binding.with_key(chosen[binding.id]) if binding.id and binding.id in chosen else binding
        for binding in bindings
        if isinstance(binding, Binding)
    ]
