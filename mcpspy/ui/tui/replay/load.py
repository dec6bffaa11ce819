"""The screen of a load test, which an engine in another process runs: its report and its end."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.engine import EngineProcess
from mcpspy.io.settings import slug
from mcpspy.ui.model.load_run import LoadModel
from mcpspy.ui.model.replay_run import command_line
from mcpspy.ui.text.width import cut_middle
from mcpspy.ui.tui.bindings import LOAD_KEYS
from mcpspy.ui.tui.replay.dialog import shown_target
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, TextPrompt

ENGINE = "mcpspy.ui.model.load_engine"

TICK = 0.1

FLASH = 4.0


class LoadScreen(DismissibleScreen[bool]):
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
        super().__init__()
        self.model = LoadModel()
        self._config, self._session_name = config, name
        self.shown_target = shown_target(config)
        self._engine = EngineProcess(ENGINE, self.model.take, self._engine_ended)
        self._title = SplitLine(id="title")
        self._page = Static(markup=False)
        self._cause = Static(id="cause", markup=False)
        self._status = SplitLine(id="status", classes="-soft")
        self._keys = KeyFooter()
        self._seen = -1
        self._began = time.monotonic()
        self._flash, self._flash_until = "", 0.0

    def compose(self) -> ComposeResult:
        yield self._title
        with VerticalScroll(id="report"):
            yield self._page
        yield self._cause
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        self.set_interval(TICK, self._look)
        self._start()

    async def on_unmount(self) -> None:
        await self._engine.stop()

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

    def action_stop(self) -> None:
        self._engine.send("stop")

    def action_report(self) -> None:
        def whole(path: str) -> str:
            return os.path.abspath(os.path.expanduser(path))

        async def report(path: str) -> None:
            self._engine.send("report", path=whole(path))

        question = "Save the report to .html, .json or .csv (histograms):"
        name = f"load-{slug(self._session_name)}.html"
        self.app.push_screen(TextPrompt(question, name, done="save", act=report))

    def action_copy_command(self) -> None:
        command = sanitize(command_line(self._config, self._config["ignored"]))
        self.app.copy_to_clipboard(command)
        self.flash_message(f"copied: {command}")

    def action_repeat(self) -> None:
        self.dismiss(True)

    def action_back(self) -> None:
        def leave(yes: bool | None) -> None:
            if yes:
                self.dismiss(False)

        if question := self.leave_question:
            self.app.push_screen(ConfirmPrompt(question, "stop", "stay"), leave)
        else:
            leave(True)

    def flash_message(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self._update_lines()

    # Not run_worker(self._start()): a coroutine whose screen is closed before it starts is never awaited.
    @work(exit_on_error=False)
    async def _start(self) -> None:
        try:
            await self._engine.start({key: value for key, value in self._config.items() if key != "form"})
        except McpspyError as error:
            self.model.failed(sanitize(str(error)))

    def _engine_ended(self, reason: str) -> None:
        if reason:
            self.model.failed(sanitize(reason))

    def _look(self) -> None:
        """Show what is new."""
        model = self.model
        if not self._keys.is_attached:  # The screen is being closed.
            return
        if self._seen != model.version:
            self._seen = model.version
            if model.message:
                self._flash, self._flash_until = sanitize(model.message), time.monotonic() + FLASH
                model.message = ""
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
        is_flashing = time.monotonic() < self._flash_until
        below: Piece = (self._flash, None) if is_flashing else ("", None)
        counts = [
            counted(model.runs, "run"),
            counted(model.requests, "request"),
            counted(model.errors, "error"),
        ]
        self._status.set_text([below], [(" · ".join(counts), rows.BAD if model.errors else rows.QUIET)])
