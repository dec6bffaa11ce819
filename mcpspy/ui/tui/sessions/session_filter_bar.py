"""The line in which the filter of the sessions is typed.

Owns what is typed and what is wrong with it: a bad filter changes nothing, so
that a word may be typed letter by letter. The input, and the filters before
this one, are `filterbar`'s.
"""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Input

from mcpspy.core.query.lexer import QueryError
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.session.filterbar import FilterInput, FilterLine
from mcpspy.ui.tui.sessions.session_filter import SessionFilter

EXAMPLE = "weather state:live -name:test server:everything"


class SessionFilterBar(FilterLine):
    """A filter being typed, or in force."""

    DEFAULT_CSS = "SessionFilterBar.-open { display: block; }"

    class Changed(Message):
        """Another filter is in force."""

    class Left(Message):
        """The list is wanted again."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = SessionFilter("")
        """What is in force: the last one without a fault."""
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
        """Keep the filter, or have none."""
        event.stop()
        if event.clear or not self._input.value.strip():
            self.clear()
        self._input.keep()
        self.post_message(self.Left())

    def _apply(self) -> None:
        try:
            wanted = SessionFilter(self._input.value)
        except QueryError as error:
            self._say_wrong(sanitize(str(error.args[0])))
            return
        self._say_wrong("")
        if wanted.text != self.filter.text:
            self.filter = wanted
            self.post_message(self.Changed())
