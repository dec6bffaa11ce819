"""The processes of a server on stdio: one per client, or one that clients share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpspy.core.gateway.shared import SharedServer
from mcpspy.io.client import ReceivedMessage, ServerCommand, StderrLine
from mcpspy.io.serving.client import LiveConnection
from mcpspy.io.serving.live_server import LiveServer, LiveServerConnection
from mcpspy.io.watch.server import RestartableServer


class ProcessObserver:
    """Takes what the processes report: lines of stderr, and ends."""

    def heard(self, line: bytes) -> None:
        """Take a line of stderr, without its end."""

    def ended(self, why: str) -> None:
        """Take the reason why a process ended that mcpspy did not end."""


class ProcessEvents:
    """Takes the events of one process."""

    def __init__(self, ended: Callable[[], None], restarted: Callable[[dict[str, Any]], None]) -> None:
        """`ended` is called when no requests can be sent any more, and open requests have their errors.

        `restarted` takes the fields of notes of kind `restart`.
        """
        self.ended, self.restarted = ended, restarted


class ServerCommands:
    """Starts the processes of one command."""

    def __init__(self, command: list[str], observer: ProcessObserver, *, is_watched: bool) -> None:
        """Describe the processes. If they are watched, each is restarted for its clients."""
        self.observer = observer
        self._command = ServerCommand(command)
        self._is_watched = is_watched

    def process(self, receive: Callable[[bytes], None], events: ProcessEvents) -> LiveConnection:
        """Return a process, which starts with its first message."""
        if self._is_watched:
            return RestartedProcess(self._command, receive, self.observer, events)
        real = LiveServer(self._command, "", None, failure="mcpspy http", restarts=False)
        return ServerProcess(real, receive, self.observer, events.ended)


class ServerProcess(LiveServerConnection):
    """A process, from its first message on. After its end, requests get an error."""

    def __init__(
        self,
        real: LiveServer,
        receive: Callable[[bytes], None],
        observer: ProcessObserver,
        ended: Callable[[], None],
    ) -> None:
        """Create a process. `ended` is called after it has ended by itself, and open requests have their errors."""
        super().__init__(real, receive)
        self._observer = observer
        self._ended = ended

    async def _run(self, initialize: bytes | None) -> None:
        await super()._run(initialize)
        self._observer.ended(self._why)
        self._ended()

    def _take(self, event: object) -> None:
        if isinstance(event, StderrLine):
            self._observer.heard(event.line)
        else:
            super()._take(event)


class RestartedProcess:
    """A process, and those that follow it when the code of the server changes, or a viewer orders a restart.

    The requests of mcpspy to them, such as the repeated `initialize`, are not recorded: the recording is that of HTTP.
    """

    def __init__(
        self,
        command: ServerCommand,
        receive: Callable[[bytes], None],
        observer: ProcessObserver,
        events: ProcessEvents,
    ) -> None:
        self._server = RestartableServer(command, self)
        self._receive = receive
        self._observer = observer
        self._events = events
        self._has_begun = False

    @property
    def show_handshake(self) -> Callable[[], bytes | None]:
        return self._server.machine.show_handshake

    def send(self, data: bytes, initialize: bytes | None) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._server.begin()
        machine = self._server.machine
        if not machine.is_stale(data):
            self._server.send(machine.renamed(data) or data)

    def restart(self, why: dict[str, Any]) -> bool:
        """Restart the process. Return False if it was never started, or is being ended."""
        return self._has_begun and self._server.restart(why)

    async def close(self) -> None:
        await self._server.close()

    def sending(self, data: bytes) -> None:
        """Take a message of mcpspy, which is not recorded."""

    def generated(self, data: bytes) -> None:
        self._receive(self._server.machine.for_host(data))

    def received(self, event: ReceivedMessage) -> None:
        data = event.data.removesuffix(b"\r")
        found = self._server.machine.server(data)
        if found.is_forwarded:
            self.generated(data)
        if found.replacement is not None:
            self.generated(found.replacement)
        self._server.run(found.commands)

    async def wait_for_room(self) -> None:
        """Return at once: the streams of a client have their own limits."""

    def heard(self, line: bytes) -> None:
        self._observer.heard(line.removesuffix(b"\r"))

    def input_ended(self) -> None:
        """Take the end of the session, which the recording has."""

    def note(self, fields: dict[str, Any]) -> None:
        self._events.restarted(fields)

    def failed(self, error: BaseException) -> None:
        self._observer.ended(f"a bug in mcpspy: {type(error).__name__}: {error}")
        self._events.ended()


class OwnProcess:
    """The process of one client."""

    def __init__(self, commands: ServerCommands, events: ProcessEvents) -> None:
        self._commands = commands
        self._events = events

    def connection(self, receive: Callable[[bytes], None]) -> LiveConnection:
        return self._commands.process(receive, self._events)


class SharedProcess:
    """A process that clients share. Their ids and tokens differ for it (`core.gateway.shared`)."""

    def __init__(self, commands: ServerCommands, events: ProcessEvents) -> None:
        self.has_ended = False
        self._after = events.ended
        self._restarted = events.restarted
        self.process = commands.process(self._receive, ProcessEvents(self._end, self._report))
        if isinstance(self.process, RestartedProcess):
            self.server = SharedServer(self.process.show_handshake)
        else:
            self.server = SharedServer()
        self._receivers: dict[int, Callable[[bytes], None]] = {}
        self._numbers = 0

    @property
    def has_clients(self) -> bool:
        return bool(self._receivers)

    def connection(self, receive: Callable[[bytes], None]) -> SharedConnection:
        self._numbers += 1
        self._receivers[self._numbers] = receive
        return SharedConnection(self, self._numbers)

    def send(self, client: int, data: bytes) -> None:
        to_server, to_client = self.server.from_client(client, data)
        for each in to_server:
            self.process.send(each, None)
        for each in to_client:
            self._receivers[client](each)

    def leave(self, client: int) -> None:
        if self._receivers.pop(client, None) is not None and not self.has_ended:
            for each in self.server.leave(client):
                self.process.send(each, None)

    async def close(self) -> None:
        self.has_ended = True
        await self.process.close()

    def _receive(self, data: bytes) -> None:
        for client, message in self.server.from_server(data):
            if client in self._receivers:
                self._receivers[client](message)

    def _report(self, fields: dict[str, Any]) -> None:
        """Take the fields of a note; the ids in it are not those of the clients."""
        self._restarted({key: value for key, value in fields.items() if key != "repeated"})

    def _end(self) -> None:
        self.has_ended = True
        self._after()


class SharedConnection:
    """The connection of one client to a process that clients share."""

    def __init__(self, process: SharedProcess, number: int) -> None:
        self.process = process
        self._number = number

    def send(self, data: bytes, initialize: bytes | None) -> None:
        self.process.send(self._number, data)

    def leave(self) -> None:
        """Cancel what is open."""
        self.process.leave(self._number)

    async def close(self) -> None:
        self.leave()
