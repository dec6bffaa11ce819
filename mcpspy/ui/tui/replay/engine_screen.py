"""The shared part of the screens of a replay and of a load test, which watch an engine."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import Any

from textual import work
from textual.widgets import Static

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.engine import EngineProcess
from mcpspy.ui.model.load_run import LoadModel
from mcpspy.ui.model.replay_run import ReplayModel, command_line
from mcpspy.ui.tui.replay.dialog import shown_target
from mcpspy.ui.tui.widgets.base import DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt, TextPrompt

TICK = 0.1
"""Seconds between two looks at the model."""

FLASH = 4.0
"""Seconds for which the status line shows a message."""


class EngineScreen(DismissibleScreen[bool]):
    """A screen that ends its engine when it is closed; dismissed with True if the user wants another run."""

    def __init__(self, config: dict[str, Any], name: str, model: ReplayModel | LoadModel) -> None:
        """`config` is that of the engine, with `form`; `name` that of the session."""
        super().__init__()
        self.shown_target = shown_target(config)
        self._config, self._session_name, self._watched = config, name, model
        self._engine = EngineProcess(model.ENGINE, model.take, self._engine_ended)
        self._title = SplitLine(id="title")
        self._cause = Static(id="cause", markup=False)
        self._status = SplitLine(id="status", classes="-soft")
        self._keys = KeyFooter()
        self._seen = -1
        self._flash, self._flash_until = "", 0.0

    def on_mount(self) -> None:  # Textual calls it beside that of a subclass.
        self.set_interval(TICK, self._look)
        self._start()

    async def on_unmount(self) -> None:
        await self._engine.stop()

    @property
    @abstractmethod
    def leave_question(self) -> str:
        """The question before the screen is closed; empty without one."""

    @property
    def ignored(self) -> list[str]:
        """The ignored patterns."""
        return list(self._config["ignored"])

    def action_stop(self) -> None:
        self._engine.send("stop")

    def action_copy_command(self) -> None:
        command = sanitize(command_line(self._config, self.ignored))
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

    def ask_for_report(self, question: str, name: str) -> None:
        """Ask for the file of a report, and let the engine write it."""

        def whole(path: str) -> str:
            return os.path.abspath(os.path.expanduser(path))

        async def report(path: str) -> None:
            self._engine.send("report", path=whole(path))

        self.app.push_screen(TextPrompt(question, name, done="save", act=report))

    def flash_message(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self._update_lines()

    @property
    def is_flashing(self) -> bool:
        return time.monotonic() < self._flash_until

    def _is_changed(self) -> bool:
        """Return whether the model has changed since the last look, and take its message."""
        model = self._watched
        if self._seen == model.version:
            return False
        self._seen = model.version
        if model.message:
            self._flash, self._flash_until = sanitize(model.message), time.monotonic() + FLASH
            model.message = ""
        return True

    @abstractmethod
    def _look(self) -> None:
        """Show what is new."""

    @abstractmethod
    def _update_lines(self) -> None:
        """Write the lines of the title and the status."""

    # Not run_worker(self._start()): a coroutine whose screen is closed before it starts is never awaited.
    @work(exit_on_error=False)
    async def _start(self) -> None:
        try:
            await self._engine.start({key: value for key, value in self._config.items() if key != "form"})
        except McpspyError as error:
            self._watched.failed(sanitize(str(error)))

    def _engine_ended(self, reason: str) -> None:
        if reason:
            self._watched.failed(sanitize(reason))
