"""The dialog before a mock, and the window that shows how clients reach it.

`ServeDialog` starts the mock, and stays open with the reason if that fails. `ConnectScreen` shows and copies the URL,
the command line and the entry for a host, and enters it into a configuration while the mock serves.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.hosts.temporary import TemporaryEntry
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.model.mock_control import MockForm, RunningMock, remember_mock, remembered_mock
from mcpspy.ui.tui.widgets.base import DismissibleModal
from mcpspy.ui.tui.widgets.prompts import TextPrompt


class ServeDialog(DismissibleModal[RunningMock | None]):
    """Asks for the port and the real server; dismissed with the mock that serves, or None if the user cancels."""

    CSS = """
    ServeDialog { align: center middle; background: $background 60%; }
    ServeDialog #serve { width: 76; max-width: 100%; height: auto; padding: 0 1; background: $surface;
                         border: solid $primary; }
    ServeDialog Input { border: none; padding: 0; height: 1; background: $panel; }
    ServeDialog Input:focus { background: $primary-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel", tooltip="do not serve", id="serve.leave"),
    ]

    HELP_NAME = "serve this session"

    def __init__(self, summary: Summary, folder: str) -> None:
        """Serve a session; record its clients to `folder`."""
        super().__init__()
        self._summary = summary
        self._folder = folder
        form = remembered_mock(summary.header)
        self._port = Input(form.port, compact=True, id="port", select_on_focus=True)
        self._server = Input(form.server or "", compact=True, id="server", select_on_focus=False)
        self._error_line = Static("", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="serve"):
            yield Static(f"Serve {sanitize(self._summary.header.name)} in place of its server:", markup=False)
            yield Static("port of 127.0.0.1 (0: a free one)", classes="role--quiet", markup=False)
            yield self._port
            yield Static(
                "real server, started only for requests that you pass on (command line or URL; may be empty)",
                classes="role--quiet",
                markup=False,
            )
            yield self._server
            yield self._error_line
            yield Static("enter: serve   tab: other field   esc: cancel", classes="role--quiet", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Start the mock; show the reason if it does not start."""
        event.stop()
        self.run_worker(self._start(), exclusive=True)

    async def _start(self) -> None:
        self._show("starting …", "quiet")
        form = MockForm(self._port.value, self._server.value)
        try:
            running = RunningMock(form.setup(self._summary, self._folder))
            await running.start()
        except McpspyError as error:
            self._show(str(error), "bad")
            return
        try:
            remember_mock(self._summary.header, form)
        except OSError as error:
            self.notify(f"the values are not remembered: {error.strerror}", markup=False)
        self.dismiss(running)

    def _show(self, text: str, role: str) -> None:
        self._error_line.update(sanitize(text))
        self._error_line.set_classes([f"role--{role}"])


class ConnectScreen(DismissibleModal[None]):
    """The ways to reach a mock."""

    CSS = """
    ConnectScreen { align: center middle; background: $background 60%; }
    ConnectScreen #ways { width: 100%; max-width: 100; height: auto; max-height: 100%; padding: 0 2;
                          background: $surface; border: solid $primary; scrollbar-size-vertical: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy('url')", "copy URL", tooltip="copy the URL", id="connect.copy-url"),
        Binding(
            "Y", "copy('command')", "copy command", tooltip="copy the command line", id="connect.copy-command"
        ),
        Binding(
            "x", "copy('entry')", "copy entry", tooltip="copy the entry for a host", id="connect.copy-entry"
        ),
        Binding(
            "h",
            "enter_host",
            "enter into a host",
            tooltip="enter it into a host, or remove it",
            id="connect.host",
        ),
        Binding("escape,q,c", "dismiss(None)", "close", tooltip="close this window", id="connect.leave"),
    ]

    HELP_NAME = "clients of the mock"

    def __init__(self, running: RunningMock, entries: list[TemporaryEntry]) -> None:
        """`entries` are those that this mock has in configurations; this window adds and removes them."""
        super().__init__()
        self._mock = running
        self._entries = entries
        self._page = Static(markup=False)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="ways") as box:
            box.border_title = Text("Connect a client")
            box.border_subtitle = "esc: close · ↑↓: scroll"
            yield self._page

    def on_mount(self) -> None:
        self._show("")

    @property
    def texts(self) -> dict[str, str]:
        """The texts that can be copied: `url`, `command`, `entry`."""
        running = self._mock
        return {"url": running.url, "command": running.shown_command(), "entry": running.snippet()}

    def action_copy(self, which: str) -> None:
        self.app.copy_to_clipboard(self.texts[which])
        self._show(
            {"url": "copied the URL", "command": "copied the command line"}.get(which, "copied the entry")
        )

    def action_enter_host(self) -> None:
        """Ask for a host and enter the mock there; if it is entered somewhere, remove it."""
        if self._entries:
            self.run_worker(self._remove(), exclusive=True)
            return
        question = "Host (cursor, claude-code …) or file to enter the mock into, until it ends:"
        self.app.push_screen(TextPrompt(question, done="enter", act=self._enter))

    async def _enter(self, host: str) -> None:
        running = self._mock
        entry = await asyncio.to_thread(TemporaryEntry, host, running.name, running.command)
        self._entries.append(entry)
        self._show(f"{entry.path}: {entry.server} entered; restart {entry.product} or its servers")

    async def _remove(self) -> None:
        try:
            while self._entries:
                await asyncio.to_thread(self._entries[0].remove)
                self._show(f"entry removed from {self._entries.pop(0).path}")
        except McpspyError as error:
            self._show(str(error))

    def _show(self, note: str) -> None:
        look, texts = self.app.get_component_styles, self.texts
        quiet, bold = look("role--quiet").partial_rich_style, look("role--key").partial_rich_style
        text = Text()
        if note:
            text.append(f"{sanitize(note)}\n\n", look("role--open").partial_rich_style)
        text.append("y", bold).append("  copy the URL\n", quiet).append(f"{sanitize(texts['url'])}\n\n")
        text.append("Y", bold).append(
            "  copy the command, for hosts that start their servers (stdio)\n", quiet
        )
        text.append(f"{sanitize(texts['command'])}\n\n")
        does = "remove it from the host" if self._entries else "enter it into a host, until the mock ends"
        text.append("h", bold).append(f"  {does}\n", quiet)
        for entry in self._entries:
            text.append(f"{sanitize(entry.server)} in {sanitize(str(entry.path))}\n")
        text.append("\nx", bold).append("  copy the entry of a host\n", quiet).append(
            _sanitized(texts["entry"])
        )
        self._page.update(text)


def _sanitized(text: str) -> str:
    return "\n".join(map(sanitize, text.split("\n")))
