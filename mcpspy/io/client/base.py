"""The interface of all client connections: inbound events, their queue, and the connection.

A slow consumer slows the server down instead of filling the memory. Transports inspect messages only as far as
necessary.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.redact.display import redacted_command, redacted_url

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.recording.recorder import Recorder

MAX_QUEUED = 1 << 20
"""Bytes that may be queued before the server has to wait."""

LAST_WORDS = 40
"""Number of stderr lines that are kept for the user: below the error that they name, Node.js prints up to fifteen."""

INITIALIZE_ID = '"mcpspy-initialize"'
"""JSON text of the id of an injected `initialize`. No client uses it."""

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class ReceivedMessage(NamedTuple):
    """A message, or on stdio any line."""

    at: float
    """`time.monotonic()` when its last byte arrived."""
    data: bytes
    """The server's own bytes, without the line end."""
    request: str | None = None
    """HTTP: JSON text of the id of the request whose exchange carried it. None on a stream without a request."""
    http: int | None = None
    """HTTP: number of the exchange."""
    status: int = 200
    """HTTP: status. From 400 on, the message answers `request`, whatever its id."""
    fields: dict[str, Value] | None = None
    """HTTP: fields of its entry, which the receiver records; None if it is recorded."""
    is_torn: bool = False
    """stdio: True if the line never ended."""


class StderrLine(NamedTuple):
    """A line of the server's stderr."""

    at: float
    line: bytes


class ExchangeRefused(NamedTuple):
    """An HTTP exchange that ended with an error status or without the expected message."""

    at: float
    request: str | None
    """JSON text of the id that gets no other response. None for a notification, a response, or a GET."""
    http: int
    status: int
    why: str
    """One line for the user, such as `HTTP 401 Unauthorized`."""
    is_session_lost: bool = False
    """True if the session is unknown to the server (404). A new `initialize` starts another."""


class ExchangeLost(NamedTuple):
    """An exchange that broke off and cannot be resumed: its request gets no response."""

    at: float
    request: str | None
    """None for a GET stream, a notification, or a response."""
    http: int | None
    why: str
    """One line for the user."""


class ConnectionEnded(NamedTuple):
    """The last event: the server has ended, or the connection was closed."""

    at: float
    code: int | None = None
    """stdio: the exit code, if the server exited."""
    signal: str | None = None
    """stdio: the name of the signal, if one ended the server."""
    why: str = ""
    """One line for the user."""


InboundEvent: TypeAlias = ReceivedMessage | StderrLine | ExchangeRefused | ExchangeLost | ConnectionEnded


class Inbound:
    """The queue of inbound events."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[InboundEvent] = asyncio.Queue()
        self._size = 0
        self._has_space = asyncio.Event()
        self._has_space.set()
        self.on_space: Callable[[], None] | None = None
        """Called when the queue has space again."""

    @property
    def is_full(self) -> bool:
        """Return whether the server should wait."""
        return self._size > MAX_QUEUED

    def put(self, event: InboundEvent) -> None:
        self._size += _size(event)
        if self.is_full:
            self._has_space.clear()
        self._queue.put_nowait(event)

    async def get(self) -> InboundEvent:
        event = await self._queue.get()
        self._size -= _size(event)
        if not self.is_full and not self._has_space.is_set():
            self._has_space.set()
            if self.on_space is not None:
                self.on_space()
        return event

    async def wait_for_space(self) -> None:
        await self._has_space.wait()


INHERITED = (
    """APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE SYSTEMROOT TEMP
    USERNAME USERPROFILE"""
    if os.name == "nt"
    else "HOME LOGNAME PATH SHELL TERM USER"
).split()
"""The variables that the clients of the SDKs give to a server (TypeScript: getDefaultEnvironment, Python:
get_default_environment); other variables of the host's shell do not reach it."""


class ServerCommand(NamedTuple):
    """The command line of a server to start."""

    arguments: list[str]
    cwd: str | None = None
    """Its working directory; None for that of mcpspy."""
    environment: Mapping[str, str] = {}
    """Variables in addition to those of mcpspy, or to those that hosts pass on."""
    is_bare: bool = False
    """True if the server gets only the variables that the SDKs pass on (`INHERITED`), and not all of mcpspy's."""

    @property
    def variables(self) -> dict[str, str] | None:
        """Return the environment of the server; None for that of mcpspy."""
        if self.is_bare:
            return {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(
                self.environment
            )
        return {**os.environ, **self.environment} if self.environment else None

    @property
    def shown(self) -> str:
        """Return the command line for messages, redacted."""
        return " ".join(redacted_command(self.arguments))


class ServerAddress(NamedTuple):
    """The address of a running server."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that are sent with every request, such as Authorization."""
    cacert: str | None = None
    """A PEM file with another trusted CA."""
    insecure: bool = False
    """True if the server's certificate is not checked."""
    is_sse: bool | None = None
    """True for HTTP+SSE (2024-11-05). None assumes HTTP+SSE if the path ends in `sse`."""
    max_body: int = 0
    """Bytes of a decoded body or event above which a response is not read (0: no limit)."""
    typed: str = ""
    """The URL to print, if variables of the command line were filled in."""

    @property
    def has_authorization(self) -> bool:
        """True if the headers contain Authorization."""
        return any(name.lower() == "authorization" for name, _ in self.headers)

    @property
    def shown(self) -> str:
        """Return the URL for messages, redacted."""
        return redacted_url(self.typed or self.url)


ServerTarget: TypeAlias = ServerCommand | ServerAddress


class ServerConnection(ABC):
    """A connection to a server. Use it as an async context manager, or call `close`."""

    def __init__(self, name: str, recorder: Recorder | None) -> None:
        self.name = name
        """The server's command or URL, redacted."""
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        """The last lines of the server's stderr."""
        self.ended: ConnectionEnded | None = None
        """The last event, once known; `hear` may not have returned it yet."""
        self._recorder = recorder
        self._inbox = Inbound()

    @property
    def last_error(self) -> str:
        """The line of the server's stderr that names its error, or the last one; empty if there is none."""
        # The causes of explain are many, and few servers fail.
        from mcpspy.analysis.explain.evidence import PrintedLine, named_error
        from mcpspy.analysis.lint.finding import EntryPosition

        named = named_error([PrintedLine(0.0, EntryPosition(), line) for line in self.last_words])
        return named.framed if named is not None else ""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send one message (or a batch) as JSON text. Never raises because of the server.

        Returns when the message is sent. Over HTTP, a message that needs no response has also been accepted or
        refused by then, so the caller should limit the time.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connection as SDK clients do, and leave nothing behind. Events until then stay in the queue."""

    async def hear(self) -> InboundEvent:
        """Return the next event. `ConnectionEnded` is the last one."""
        return await self._inbox.get()

    async def __aiter__(self) -> AsyncIterator[InboundEvent]:
        """Yield the events; `ConnectionEnded` is the last one."""
        while True:
            event = await self.hear()
            yield event
            if isinstance(event, ConnectionEnded):
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _enqueue(self, event: InboundEvent) -> None:
        if self.ended is not None:  # A grandchild may still write to a pipe.
            return
        if isinstance(event, StderrLine):
            self.last_words.append(event.line.decode("utf-8", "backslashreplace"))
        elif isinstance(event, ConnectionEnded):
            self.ended = event
        self._inbox.put(event)

    def _record(self, lines: Lines) -> None:
        if self._recorder is not None and lines:
            self._recorder.write(lines)

    def _now(self) -> float:
        """Return the time as used in the recording."""
        return self._recorder.now() if self._recorder is not None else monotonic()


def with_mcpspy_id(initialize: bytes) -> bytes:
    """Return a client's `initialize` with the id of mcpspy."""
    return replaced(one_line(initialize), ("id",), INITIALIZE_ID.encode())


def _size(event: InboundEvent) -> int:
    if isinstance(event, ReceivedMessage):
        return len(event.data) + 64
    return len(event.line) + 64 if isinstance(event, StderrLine) else 0
