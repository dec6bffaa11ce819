"""The processes of a server on stdio: one per client, or one that clients share."""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.core.gateway.shared import SharedServer
from mcpspy.io.client import StderrLine
from mcpspy.io.mock.upstream import RealServer, RealServerConnection


class ProcessObserver:
    """Takes what the processes report: lines of stderr, and ends."""

    def heard(self, line: bytes) -> None:
        """Take a line of stderr, without its end."""

    def ended(self, why: str) -> None:
        """Take the reason why a process ended that mcpspy did not end."""


class ServerProcess(RealServerConnection):
    """A process, from its first message on. After its end, requests get an error."""

    def __init__(
        self,
        real: RealServer,
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


class OwnProcess:
    """The process of one client."""

    def __init__(self, real: RealServer, observer: ProcessObserver, ended: Callable[[], None]) -> None:
        self._real = real
        self._observer = observer
        self._ended = ended

    def connection(self, receive: Callable[[bytes], None]) -> ServerProcess:
        return ServerProcess(self._real, receive, self._observer, self._ended)


class SharedProcess:
    """A process that clients share. Their ids and tokens differ for it (`core.gateway.shared`)."""

    def __init__(self, real: RealServer, observer: ProcessObserver, ended: Callable[[], None]) -> None:
        self.server = SharedServer()
        self.has_ended = False
        self._after = ended
        self._process = ServerProcess(real, self._receive, observer, self._end)
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
            self._process.send(each, None)
        for each in to_client:
            self._receivers[client](each)

    def leave(self, client: int) -> None:
        if self._receivers.pop(client, None) is not None and not self.has_ended:
            for each in self.server.leave(client):
                self._process.send(each, None)

    async def close(self) -> None:
        self.has_ended = True
        await self._process.close()

    def _receive(self, data: bytes) -> None:
        for client, message in self.server.from_server(data):
            if client in self._receivers:
                self._receivers[client](message)

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
