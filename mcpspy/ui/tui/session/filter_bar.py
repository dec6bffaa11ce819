"""The filter line of a session. An invalid filter is reported and not applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input

from mcpspy.analysis import rows
from mcpspy.core.query.completion import MESSAGE_FIELDS, MESSAGE_VALUES, completed, suggestion
from mcpspy.core.query.parser import Query, QueryError, parse
from mcpspy.core.regex import AllowUnsafe
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.row_filter import PROBLEMS
from mcpspy.ui.tui.widgets.base import SplitLine, allows_unsafe

SETTLE = 0.1
"""Seconds from the last key to filtering, so that a million rows are not filtered for every letter."""

Candidates: TypeAlias = Callable[[str], Iterable[str]]
"""Text of a filter → texts with which it may continue."""

EXAMPLE = "tool:echo status:err >200ms size>10kb -word"


class FilterSuggester(Suggester):
    """Shows behind the cursor how the last term may continue; the key `right` takes it."""

    def __init__(self, candidates: Candidates) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._candidates = candidates

    async def get_suggestion(self, value: str) -> str | None:
        return suggestion(value, self._candidates(value))


class FilterInput(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter,tab,down", "done", "apply", key_display="enter", tooltip="apply filter", id="filter.done"
        ),
        Binding("up,ctrl+p", "earlier", "previous", tooltip="previous filter", id="filter.earlier"),
        Binding("escape", "clear", "clear filter", id="filter.clear"),
    ]

    HELP_NAME = "filter"

    class Left(Message):
        """The user left the filter line; `clear` drops the filter."""

        def __init__(self, *, clear: bool) -> None:
            super().__init__()
            self.clear = clear

    def __init__(self, candidates: Candidates) -> None:
        super().__init__(
            compact=True,
            placeholder=EXAMPLE,
            select_on_focus=False,
            suggester=FilterSuggester(candidates),
        )
        self.past: list[str] = []
        self._back = 0

    def keep(self) -> None:
        text = self.value.strip()
        if text and self.past[-1:] != [text]:
            self.past.append(text)
        self._back = 0

    def action_earlier(self) -> None:
        if self._back < len(self.past):
            self._back += 1
            self.value = self.past[-self._back]
            self.cursor_position = len(self.value)

    def action_done(self) -> None:
        self.post_message(self.Left(clear=False))

    def action_clear(self) -> None:
        self.post_message(self.Left(clear=True))


class FilterLine(Horizontal):
    DEFAULT_CSS = """
    FilterLine { height: 1; display: none; background: $surface; }
    FilterLine > #slash { width: 3; background: $surface; }
    FilterLine > FilterInput { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
    FilterLine > #filter-error { width: auto; max-width: 60%; background: $surface; }
    """

    def __init__(self, candidates: Candidates) -> None:
        super().__init__()
        self._sign = SplitLine(id="slash")
        self._input = FilterInput(candidates)
        self._error_line = SplitLine(id="filter-error")

    def compose(self) -> ComposeResult:
        yield self._sign
        yield self._input
        yield self._error_line

    def on_mount(self) -> None:
        self._sign.set_text([("/", "title")])
        self._show_error("")

    def _show_error(self, message: str, role: str = rows.BAD) -> None:
        self._error_line.set_text([(message, role)] if message else [])
        self._error_line.styles.width = len(message) + 2 if message else 0


class FilterBar(FilterLine):
    class Changed(Message):
        """The active filter has changed."""

        def __init__(self, query: Query) -> None:
            super().__init__()
            self.query = query

    def __init__(self, names: Callable[[], Iterable[tuple[str, str]]] = lambda: ()) -> None:
        """`names` returns the methods and subjects of the session, which complete a filter."""
        super().__init__(lambda text: completed(text, MESSAGE_FIELDS, MESSAGE_VALUES, names))
        self._settling: Timer | None = None
        self.active = ""
        """The active filter of the user: the last valid one."""
        self.problems = False
        """True if the active filter is limited to problems."""

    @property
    def text(self) -> str:
        return self._input.value

    @property
    def is_typed(self) -> bool:
        return self._input.has_focus

    def open(self) -> None:
        self._show(on=True)
        if not self._input.value and self._input.past:
            self._input.value = self._input.past[-1]
        self._input.cursor_position = len(self._input.value)
        self.screen.set_focus(self._input)  # Immediately: the next key must not run a command.

    def put(self, text: str) -> None:
        self._input.value = text
        self._input.keep()
        self._show(on=bool(text))
        self._send()

    def clear(self) -> None:
        self._input.keep()
        self._input.value = ""
        self._show(on=False)
        self._send()

    def limit(self, *, to_problems: bool) -> None:
        """Limit the active filter to problems, or remove that limit."""
        self.problems = to_problems
        self.post_message(self.Changed(self._limited(self.active, allows_unsafe(self))))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE, self._send)

    def on_filter_input_left(self, event: FilterInput.Left) -> None:
        event.stop()
        if event.clear or not self._input.value.strip():
            self.clear()
        else:
            self._input.keep()
            self._send()
        self.screen.focus_next("MessageList")

    def _show(self, *, on: bool) -> None:
        # Not by a CSS class: it takes effect in the next frame, and a hidden widget cannot take the focus.
        self.display = on

    def _send(self) -> None:
        if self._settling is not None:
            self._settling.stop()
            self._settling = None
        text = self._input.value.strip()
        warnings: list[str] = []

        def allow_unsafe(pattern: str, construct: str) -> bool:
            warnings.append(f"{construct} may never end")
            return allows_unsafe(self)(pattern, construct)

        try:
            query = parse(text, linted=True, allow_unsafe=allow_unsafe)
        except QueryError as error:
            self._show_error(sanitize(str(error.args[0])))
            return
        self._show_error(sanitize(", ".join(warnings)), rows.OPEN)
        if text != self.active:
            self.active = text
            self.post_message(self.Changed(self._limited(text, allow_unsafe) if self.problems else query))

    def _limited(self, text: str, allow_unsafe: AllowUnsafe) -> Query:
        both = (f"({text}) {PROBLEMS}" if text else PROBLEMS) if self.problems else text
        return parse(both, linted=True, allow_unsafe=allow_unsafe)
