"""The filter of the sessions list, and its input line.

The language is a small version of `core.query.parser`: words, `-` for not, and
four fields. All terms must match. An invalid filter is not applied.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence

from textual.message import Message
from textual.widgets import Input

from mcpspy.core.query.lexer import QueryError
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.ui.tui.session.filter_bar import FilterInput, FilterLine

Test = Callable[[Summary], bool]

STATES = ", ".join(RecordingState)

_ATOM = re.compile(r'(?P<no>-?)(?:(?P<field>[a-z]+):)?(?P<value>"[^"]*"?|\S*)', re.IGNORECASE)

_TEXTS: dict[str, Callable[[Summary], object]] = {
    "name": lambda summary: summary.header.name,
    "server": lambda summary: summary.server or "",
    "client": lambda summary: summary.client or "",
}

FIELDS = ("state", *_TEXTS)


class SessionFilter:
    """A parsed filter. Raises QueryError with the position of an error."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self._tests = _tests(text)

    def __call__(self, sessions: Sequence[Summary]) -> Sequence[Summary]:
        if not self._tests:
            return sessions
        return [summary for summary in sessions if all(test(summary) for test in self._tests)]


def _tests(text: str) -> list[Test]:
    tests, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _ATOM.match(text, at)
        assert found is not None
        at = found.end()
        test = _test(found)
        tests.append(_negated(test) if found["no"] else test)
    return tests


def _test(found: re.Match[str]) -> Test:
    field, value = (found["field"] or "").lower(), found["value"]
    if field and field not in FIELDS:
        near = difflib.get_close_matches(field, FIELDS, 1, 0.6)
        if near and not value.startswith("//"):
            raise QueryError(f"unknown field {field}: did you mean {near[0]}:?", *found.span("field"))
        field, value = "", f"{found['field']}:{value}"  # A word with a colon: `http://x`, `localhost:80`.
    if value.startswith('"') and (len(value) == 1 or not value.endswith('"')):
        raise QueryError("unclosed quote", *found.span("value"))
    value = value.strip('"').lower()
    if not value:
        after = f"expected a value after '{field}:'" if field else "expected a condition after '-'"
        message = after if field or (found["no"] and not found["value"]) else "empty quotes: expected a value"
        raise QueryError(f"{message} ({STATES})" if field == "state" else message, *found.span())
    if field == "state":
        return _state(value, found)
    if field:
        text = _TEXTS[field]
        return lambda summary: value in str(text(summary)).lower()
    # Ids match by prefix, as everywhere: almost any one or two letters occur in most ids.
    return lambda summary: summary.header.id.startswith(value) or value in _all_of(summary)


def _state(value: str, found: re.Match[str]) -> Test:
    wanted = {state for state in RecordingState if state.startswith(value)}  # Prefixes match while typing.
    if not wanted:
        raise QueryError(f'unknown state "{value}": use one of {STATES}', *found.span("value"))
    return lambda summary: summary.state in wanted


def _all_of(summary: Summary) -> str:
    header = summary.header
    parts = (header.name, summary.server, summary.client, summary.revision, header.upstream)
    return "\n".join([*(str(part or "") for part in parts), " ".join(header.command or [])]).lower()


def _negated(test: Test) -> Test:
    return lambda summary: not test(summary)


EXAMPLE = "weather state:live -name:test server:everything"


class SessionFilterBar(FilterLine):
    DEFAULT_CSS = "SessionFilterBar.-open { display: block; }"

    class Changed(Message):
        """The active filter has changed."""

    class Left(Message):
        """The user left the filter line."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = SessionFilter("")
        """The active filter: the last valid one."""
        self._input.placeholder = EXAMPLE

    def open(self) -> None:
        self.add_class("-open")
        self._input.focus()

    def clear(self) -> None:
        self._input.keep()
        self._input.value = ""
        self.remove_class("-open")
        self._apply()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply()

    def on_filter_input_left(self, event: FilterInput.Left) -> None:
        event.stop()
        if event.clear or not self._input.value.strip():
            self.clear()
        self._input.keep()
        self.post_message(self.Left())

    def _apply(self) -> None:
        try:
            wanted = SessionFilter(self._input.value)
        except QueryError as error:
            self._show_error(sanitize(str(error.args[0])))
            return
        self._show_error("")
        if wanted.text != self.filter.text:
            self.filter = wanted
            self.post_message(self.Changed())
