"""The live server behind a mock or a gateway, for one client.

Connects when the server is first needed, with the client's own `initialize`. A request that cannot be sent gets
an error with the reason. The exchanges may be recorded as a separate session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread

from mcpspy.core.jsontools import replaced
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.protocol.spec import CLIENT, INTERNAL_ERROR, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.origin import MOCK
from mcpspy.core.redact.display import redacted_text
from mcpspy.errors import McpspyError
from mcpspy.io.client import (
    ConnectionEnded,
    ExchangeLost,
    ExchangeRefused,
    ReceivedMessage,
    ServerCommand,
    ServerConnection,
    ServerTarget,
    connect,
)
from mcpspy.io.client.base import INITIALIZE_ID, INITIALIZED, with_mcpspy_id
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.recording.redaction import RedactionOptions

UNRECORDED = "mcpspy mock: not recorded, and the request to the server failed"
"""Start of the error message of a request that cannot be sent."""


class LiveServer:
    def __init__(
        self,
        target: ServerTarget,
        name: str,
        append: str | None,
        redaction: RedactionOptions | None = None,
        *,
        failure: str = UNRECORDED,
        restarts: bool = True,
        origin: str = MOCK,
    ) -> None:
        """Describe a server. If it `restarts`, a request after its end starts it again, and otherwise fails."""
        self.target = target
        self.failure = failure
        self.restarts = restarts
        self._name = name
        self._append = append
        self._redaction = redaction
        self._origin = origin

    def connection(self, receive: Callable[[bytes], None]) -> LiveServerConnection:
        return LiveServerConnection(self, receive)

    def recorder(self) -> Recorder | None:
        if self._append is None:
            return None
        where = RecordingTarget()
        where.record, where.origin = self._append, self._origin
        where.redaction = self._redaction or where.redaction
        if isinstance(self.target, ServerCommand):
            return Recorder(
                where, {"transport": "stdio", "command": self.target.arguments, "name": self._name}
            )
        return Recorder(where, {"transport": "http", "upstream": self.target.url, "name": self._name})


class LiveServerConnection:
    def __init__(self, real: LiveServer, receive: Callable[[bytes], None]) -> None:
        self._real = real
        self._receive = receive
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._open: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._why = ""
        """Reason for the end of the last connection."""

    def send(self, data: bytes, initialize: bytes | None) -> None:
        """Send a message. `initialize` is the client's own, if it sent one."""
        for message in read_frame(Frame(0.0, CLIENT, data)):
            if isinstance(message, Request):
                self._open[message.id] = None
        self._outgoing.put_nowait(data)
        if self._task is None or (self._task.done() and self._real.restarts):
            self._task = asyncio.ensure_future(self._run(initialize))
        elif self._task.done():
            self._fail(self._why)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, initialize: bytes | None) -> None:
        recorder = self._real.recorder()
        connection: ServerConnection | None = None
        try:
            async with await connect(self._real.target, recorder) as connection:
                if initialize is not None:
                    await self._handshake(connection, initialize)
                sending = asyncio.ensure_future(self._send(connection))
                try:
                    async for event in connection:
                        self._take(event)
                finally:
                    sending.cancel()
            why = connection.ended.why if connection.ended is not None else ""
            self._fail(f"{connection.name}: {why or 'the connection ended'}{_last_output(connection)}")
        except McpspyError as error:
            self._fail(str(error))
        except Exception as error:  # A bug must not leave a client waiting for a response.
            self._fail(f"a bug in mcpspy: {type(error).__name__}: {error}")
        finally:
            if recorder is not None:
                ended = connection.ended if connection is not None else None
                recorder.finish(ended.code if ended else None, ended.signal if ended else None)

    async def _handshake(self, connection: ServerConnection, initialize: bytes) -> None:
        await connection.send(with_mcpspy_id(initialize))
        async for event in connection:
            if isinstance(event, ReceivedMessage):
                for message in read_frame(Frame(0.0, SERVER, event.data)):
                    if isinstance(message, Result) and message.id == INITIALIZE_ID:
                        await connection.send(INITIALIZED)
                        return
                    if isinstance(message, Failure) and INITIALIZE_ID in (message.id, event.request):
                        raise McpspyError(f"{connection.name} refused initialize: {message.text}")
            elif isinstance(event, ExchangeRefused | ExchangeLost) and event.request == INITIALIZE_ID:
                raise McpspyError(f"{connection.name}: {event.why}")
            elif isinstance(event, ConnectionEnded):
                raise McpspyError(
                    f"{connection.name} ended before it answered initialize{_last_output(connection)}"
                )

    async def _send(self, connection: ServerConnection) -> None:
        while True:
            await connection.send(await self._outgoing.get())

    def _take(self, event: object) -> None:
        if isinstance(event, ReceivedMessage):
            data = event.data
            if event.status >= 400 and event.request is not None:
                data = replaced(data, ("id",), event.request.encode())
            for message in read_frame(Frame(0.0, SERVER, data)):
                if isinstance(message, Result | Failure):
                    self._open.pop(message.id or "", None)
            self._receive(data)
        elif isinstance(event, ExchangeRefused | ExchangeLost) and event.request in self._open:
            self._refuse(event.request, event.why)

    def _fail(self, why: str) -> None:
        self._why = why
        while not self._outgoing.empty():
            self._outgoing.get_nowait()
        for id in list(self._open):  # noqa: A001
            self._refuse(id, why)

    def _refuse(self, id: str, why: str) -> None:  # noqa: A002
        self._open.pop(id, None)
        text = f"{self._real.failure}: {redacted_text(why)}"
        self._receive(responses.error(id.encode(), INTERNAL_ERROR, text))


def _last_output(connection: ServerConnection) -> str:
    return f"; its last output: {error}" if (error := connection.last_error) else ""


class LiveServerThread:
    """A `LiveServerConnection` for a caller without a loop. `receive` is called in its thread."""

    def __init__(self, real: LiveServer, receive: Callable[[bytes], None]) -> None:
        self._real_server = LiveServerConnection(real, receive)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="real server", daemon=True)
        self._thread.start()

    def send(self, data: bytes, initialize: bytes | None) -> None:
        self._loop.call_soon_threadsafe(self._real_server.send, data, initialize)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._real_server.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
