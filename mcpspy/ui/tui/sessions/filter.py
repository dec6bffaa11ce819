"""The filter line of the list of sessions, in the language of `mcpspy ls`.

An invalid filter is reported and not applied.
"""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Input

from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.sessions import SessionQuery
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report.listed_session import read_sessions_filter
from mcpspy.ui.tui.session.filter_bar import FilterInput, FilterLine

EXAMPLE = "weather errors>0 since:1d -state:live"


class SessionFilterBar(FilterLine):
    DEFAULT_CSS = "SessionFilterBar.-open { display: block; }"

    class Changed(Message):
        """The active filter has changed."""

    class Left(Message):
        """The user left the filter line."""

    def __init__(self) -> None:
        super().__init__()
        self.active = SessionQuery()
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
            query = read_sessions_filter(self._input.value)
        except QueryError as error:
            self._show_error(sanitize(str(error.args[0])))
            return
        self._show_error("")
        if query.text != self.active.text:
            self.active = query
            self.post_message(self.Changed())
