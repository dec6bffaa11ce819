"""The screen of a load test, which an engine in another process runs: its report and its end."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.io.settings import slug
from mcpspy.ui.model.load_run import LoadModel
from mcpspy.ui.text.width import cut_middle
from mcpspy.ui.tui.bindings import LOAD_KEYS
from mcpspy.ui.tui.replay.engine_screen import EngineScreen
from mcpspy.ui.tui.widgets.columns import Piece


class LoadScreen(EngineScreen):
    """A load test; dismissed with True if the user wants another one."""

    DEFAULT_CSS = """
    LoadScreen #report { height: 1fr; padding: 0 1; overflow-x: auto; }
    LoadScreen #report > Static { width: auto; }
    LoadScreen #cause { display: none; height: auto; max-height: 8; padding: 0 1; background: $background; }
    LoadScreen #cause.-shown { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = LOAD_KEYS

    HELP_NAME = "load test"

    AUTO_FOCUS = "#report"

    def __init__(self, config: dict[str, Any], name: str) -> None:
        """`config` is that of the engine, with `form`; `name` that of the session."""
        self.model = LoadModel()
        super().__init__(config, name, self.model)
        self._page = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._title
        with VerticalScroll(id="report"):
            yield self._page
        yield self._cause
        yield self._status
        yield self._keys

    @property
    def footer(self) -> tuple[str, ...]:
        """The tables of FOOTERS for the state of the test."""
        return ("load-ended",) if self.model.is_over else ("load-running",)

    @property
    def leave_question(self) -> str:
        return "" if self.model.is_over else "Stop this load test?"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of another phase."""
        if action == "stop":
            return not self.model.is_over
        return self.model.is_over if action == "report" else True

    def action_report(self) -> None:
        question = "Save the report to .html, .json or .csv (histograms):"
        self.ask_for_report(question, f"load-{slug(self._session_name)}.html")

    def _look(self) -> None:
        """Show what is new."""
        model = self.model
        if not self._keys.is_attached:  # The screen is being closed.
            return
        if self._is_changed():
            self._page.update("\n".join(model.lines))
            self._show_ending()
            self.refresh_bindings()
        self._update_lines()

    def _show_ending(self) -> None:
        lines = self.model.ending
        self._cause.set_class(bool(lines), "-shown")
        role = "role--bad" if self.model.is_bad else "role--title"
        style = self.app.get_component_styles(role).partial_rich_style
        self._cause.update(Text("\n").join(Text(line, style) for line in lines))

    def _update_lines(self) -> None:
        model, name = self.model, sanitize(self._session_name) or "session"
        state: Piece = ("running", rows.OPEN)
        if model.is_over:
            state = ("FAILED", rows.BAD) if model.is_bad else ("passed", rows.OK)
        against = cut_middle(self.shown_target, max(self.size.width - len(name) - 40, 10))
        self._title.set_text(
            [("Load test ", "title"), (name, None), (f" · against {against}", None)], [state]
        )
        below: Piece = (self._flash if self.is_flashing else "", None)
        counts = [
            counted(model.runs, "run"),
            counted(model.requests, "request"),
            counted(model.errors, "error"),
        ]
        self._status.set_text([below], [(" · ".join(counts), rows.BAD if model.errors else rows.QUIET)])
