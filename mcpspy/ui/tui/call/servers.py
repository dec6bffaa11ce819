"""The dialog that asks which server is called, shows its command, and starts it."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.worker import Worker

from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.ui.model.server_call import CallServer, ServerCall, call_servers
from mcpspy.ui.tui.widgets.base import DismissibleModal

NONE = "No server: no host on this machine has one, and tests/calls has no saved call."


class ServerOptions(OptionList):
    """The servers. Page keys do nothing while the list has no area: Textual knows no lines of options then (KeyError)."""

    def action_page_up(self) -> None:
        if self.scrollable_content_region:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        if self.scrollable_content_region:
            super().action_page_down()  # type: ignore[no-untyped-call]


class CallServerDialog(DismissibleModal[ServerCall | None]):
    """Dismissed with a server that runs, or None. Nothing is started before the user chooses."""

    CSS = """
    CallServerDialog { align: center middle; background: $background 60%; }
    CallServerDialog #call { width: 90; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
                             background: $surface; border: solid $primary; }
    CallServerDialog OptionList { height: auto; max-height: 14; border: none; padding: 0; background: $surface; }
    CallServerDialog #command { height: auto; max-height: 5; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "cancel", tooltip="cancel", id="call-server.leave"),
    ]

    HELP_NAME = "servers to call"

    def __init__(self, header: Header | None, folder: str | None) -> None:
        """Offer the server of a recording first. New sessions are recorded to `folder`."""
        super().__init__()
        self._header, self._folder = header, folder
        self._servers: list[CallServer] = []
        self._starting: Worker[None] | None = None
        self._list = ServerOptions(id="servers", markup=False)
        self._command = Static("reading the configurations of hosts …", id="command", markup=False)
        self._line = Static("", classes="role--quiet", markup=False)

    def compose(self) -> ComposeResult:
        box = Vertical(id="call")
        box.border_title = Text("Call a tool of a server, in a new session")
        with box:
            yield self._list
            yield self._command
            yield self._line
            yield Static("enter: start or connect   esc: cancel", classes="role--quiet", markup=False)

    def on_mount(self) -> None:
        self._list.focus()
        self.run_worker(self._read())

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        server = self._servers[event.option_index]
        verb = "starts" if server.is_command else "connects to"
        self._command.update(Text.assemble((f"{verb} ", "bold"), server.shown))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self._starting is None:
            self._starting = self.run_worker(self._start(self._servers[event.option_index]))

    def action_leave(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        self.dismiss(None)

    async def _read(self) -> None:
        self._servers = await asyncio.to_thread(call_servers, self._header)
        self._list.add_options(Text(sanitize(each.title), no_wrap=True) for each in self._servers)
        if self._servers:
            self._list.highlighted = 0
        else:
            self._command.update(NONE)

    async def _start(self, server: CallServer) -> None:
        self._show(f"{'starting' if server.is_command else 'connecting to'} {server.title} …", "quiet")
        call = ServerCall(server, self._folder)
        try:
            await call.start()
        except McpspyError as error:
            self._show(str(error), "bad")
        else:
            self.dismiss(call)
        finally:
            self._starting = None

    def _show(self, text: str, role: str) -> None:
        self._line.update(sanitize(text))
        self._line.set_classes([f"role--{role}"])
