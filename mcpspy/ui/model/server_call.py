"""Calls of servers without a host: which servers there are, and the calls of one in a new session.

A server is one that the user has already: that of a recording, of an entry in the configuration of a host, or of a
saved call.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.original import original
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.protocol.message import Failure, Notification, Result
from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.display import redacted_url, shown_command
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.client import ServerAddress, ServerCommand, ServerTarget
from mcpspy.io.client.conversation import Conversation, ServerOffer, offered_lists
from mcpspy.io.client.host_entry import server_of, target_of
from mcpspy.io.hosts.configuration import ConfigTarget, listed_servers
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.ui.model.call_form import METHODS, CallForms, CallTarget, targets_of
from mcpspy.ui.model.live_call import wait_for_response
from mcpspy.ui.model.recorded_conversation import RecordedConversation
from mcpspy.ui.model.replay_options import RECORDED, ReplayForm
from mcpspy.ui.model.replayed import target_of as target_of_config
from mcpspy.ui.model.saved_call import CALLS, ENDINGS, SavedCall, read_saved
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.model.session_model import SessionModel

SECONDS = 60.0
"""Wait for each response; progress begins it again. A user who does not want to wait cancels."""

WRITTEN = 10.0
"""Seconds in which a response that was received appears in the recording."""

MOST_SAVED = 200
"""Maximum saved calls that are offered."""


class CallServer(NamedTuple):
    """A server that can be called."""

    title: str
    shown: str
    """Its command line or URL, without secrets."""
    find: Callable[[], tuple[str, ServerTarget]]
    """Return the name for its session, and its address. Raises UsageError or CannotStart."""
    saved: SavedCall | None = None
    """The saved call that the form begins with."""

    @property
    def is_command(self) -> bool:
        """True if a call starts a process."""
        return not self.shown.startswith(("http:", "https:"))


def call_servers(header: Header | None = None) -> list[CallServer]:
    """Return the server of a recording, those of the configurations of hosts, and those of the saved calls here.

    Reads these files.
    """
    found = [] if header is None else _recorded(header)
    for host, configuration, entry in listed_servers():
        if (server := original(entry, configuration.location.layout)) is not None:
            shown = _shown_url(server.url) if server.url else shown_command(server.command)
            found.append(CallServer(f"{host.name}/{entry.name}", shown, partial(_find, configuration, entry)))
    return [*found, *_saved_servers({each.title: each.shown for each in found})]


class ServerCall(CallForms):
    """A server that was started or connected to for the calls of a form."""

    def __init__(
        self, server: CallServer, folder: str | None, changed: Callable[[], None] = lambda: None
    ) -> None:
        """Its session is recorded to this folder. `changed` is called when there is progress."""
        super().__init__()
        self._changed = changed
        self.server = server
        self.path = Path()
        """Its recording."""
        self.offer: ServerOffer | None = None
        self.chosen: int | None = None
        """The place of the target of a saved call, whose form begins with the saved arguments."""
        self.model: SessionModel
        """Its recording, which is read until it is closed."""
        self.progress = ""
        """The last progress of the call that runs."""
        self._folder = folder
        self._recorded: RecordedConversation
        self._conversation: Conversation | None = None
        self._loader: SessionLoader
        self._reading: asyncio.Task[None] | None = None
        self._call: asyncio.Task[Result | Failure] | None = None

    async def start(self) -> Self:
        """Start it or connect to it, and read its lists. Raise McpspyError with the reason if that fails."""
        name, target = await asyncio.to_thread(self.server.find)
        where = RecordingTarget()
        where.folder = self._folder
        self._recorded = RecordedConversation(where, name, target, SECONDS, notified=self._notified)
        if self._recorded.observer.path is None:
            raise CannotStart("the call cannot be recorded", "see mcpspy doctor, or use another folder")
        self.path = Path(self._recorded.observer.path)
        conversation = await self._recorded.__aenter__()
        self._conversation = conversation
        try:
            self.offer = await conversation.begin()
            listed = {
                method: [item for page in await conversation.pages(method) for item in _items(page, method)]
                for method in offered_lists(self.offer)
                if method in METHODS
            }
            self._loader = SessionLoader(summarize(self.path, read_header_of(self.path), counts=False))
            self.targets, self.model = targets_of(listed), self._loader.model
            self._take_saved()
        except BaseException:
            await self.close()
            raise
        self._reading = asyncio.create_task(self._loader.read())
        return self

    def _take_saved(self) -> None:
        """Begin the form of the tool of a saved call with its arguments."""
        if (saved := self.server.saved) is None:
            return
        for place, each in enumerate(self.targets):
            if (each.method, each.key) == ("tools/call", saved.tool):
                self.form(each).take(saved.arguments)
                self.chosen = place

    async def call(self, target: CallTarget, params: Mapping[str, Any]) -> int:
        """Return the row of the request of a call once it has a response. Raise McpspyError if it gets none."""
        begin = len(self.model)
        await self.response(target.method, params)
        assert self._conversation is not None
        number = str(self._conversation.last_id)
        try:
            async with asyncio.timeout(WRITTEN):
                row = await wait_for_response(self.model, number, begin, lambda: None)
        except TimeoutError:
            row = "the recording has stopped"
        if isinstance(row, str):
            raise CannotStart(f"the response was not recorded: {row}")
        return row

    async def response(self, method: str, params: Mapping[str, Any]) -> Result | Failure:
        """Return the response to a request; of a task, its result. Raise McpspyError if there is none."""
        if self._conversation is None or self.is_busy:
            raise UsageError("the server is closed" if self._conversation is None else "a call is running")
        self.progress = ""
        self._call = asyncio.create_task(self._response(self._conversation, method, params))
        try:
            return await asyncio.shield(self._call)
        except asyncio.CancelledError:
            if not self._call.cancelled():
                raise  # The caller was cancelled, and the call continues.
            raise CannotStart("the call was cancelled") from None

    @property
    def is_busy(self) -> bool:
        return self._call is not None and not self._call.done()

    async def cancel(self) -> None:
        """Cancel the call that runs; the server is notified."""
        if self._call is not None and self._conversation is not None and not self._call.done():
            self._call.cancel()
            await asyncio.wait([self._call])
            await self._conversation.cancel_last("cancelled by the user")

    async def close(self) -> None:
        """End the server, or the connection, and the recording."""
        conversation, self._conversation = self._conversation, None
        if conversation is None:
            return
        if self._call is not None and not self._call.done():
            self._call.cancel()
            await asyncio.wait([self._call])
        await self._recorded.__aexit__(None, None, None)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._loader.close()

    async def _response(
        self, conversation: Conversation, method: str, params: Mapping[str, Any]
    ) -> Result | Failure:
        response = await conversation.request(method, params)
        if isinstance(response, Result) and response.is_task:
            return await conversation.task_result(response)
        return response

    def _notified(self, message: Notification) -> None:
        if message.method == "notifications/progress":
            self.progress = sanitize(rows.progress(message))
            self._changed()


def _recorded(header: Header) -> list[CallServer]:
    """Return the server of a recording; none for a recording that does not name it."""
    server = shlex.join(header.command) if header.command else header.upstream or ""
    if not server:
        return []
    folder = header.cwd if header.command and header.cwd and os.path.isdir(header.cwd) else ""

    def find() -> tuple[str, ServerTarget]:
        return header.name, target_of_config(ReplayForm(server=server, cwd=folder).config())

    shown = shown_command(header.command) if header.command else _shown_url(server)
    return [CallServer(RECORDED, shown, find)]


def _find(configuration: ConfigTarget, entry: ServerEntry) -> tuple[str, ServerTarget]:
    return entry.name, target_of(configuration, entry)


def _saved_servers(entries: Mapping[str, str]) -> Iterator[CallServer]:
    """Yield the servers of the saved calls in the folder of the project. `entries` shows those of hosts."""
    files = sorted(path for path in Path(CALLS).glob("*") if path.suffix in ENDINGS)
    for path in files[:MOST_SAVED]:
        with suppress(McpspyError):  # `mcpspy call @NAME` shows what is wrong with the file.
            saved = read_saved(path)
            command, url, entry = saved.server
            if entry is None:
                shown = shown_command(command) if command else _shown_url(url or "")
            else:
                shown = entries.get(entry, entry)
            yield CallServer(
                f"@{path.stem}", shown, partial(_find_saved, path.stem, command, url, entry), saved
            )


def _find_saved(
    name: str, command: list[str], url: str | None, entry: str | None
) -> tuple[str, ServerTarget]:
    if entry is not None:
        return server_of(entry)
    if not command and url is None:
        raise UsageError(f"@{name}: no server", "add command, url or entry to its file")
    if command:
        return "", ServerCommand(command)
    if (upstream := read_upstream(url or "")) is None:
        raise UsageError(sanitize(f"@{name}: {redacted_url(url or '')}: not a server URL"))
    return upstream.host, ServerAddress(url or "")


def _shown_url(url: str) -> str:
    return sanitize(redacted_url(url))


def _items(page: Mapping[str, Any], method: str) -> Sequence[Any]:
    items = page.get(LISTINGS[method].member)
    return items if isinstance(items, list) else []
