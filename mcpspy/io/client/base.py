"""A live server, as its client reaches it, whatever lies between.

Owns what all transports have in common: messages go out by `send`, whatever
is heard comes in by `hear`, and after `close` nothing is left of it. What a
message means is its caller's; a transport looks at one as far as it has to.

What is heard over a connection, and the line in which it waits to be taken.

Owns the kinds of things a server can do to its client, and that a client that
is slow to take them slows the server down, and not the memory up.

A handshake that nobody asked for: a session begun as a client began another.

Owns the id it goes under, which no client has, so that its answer is told from theirs.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from mcpspy.core.jsontools import one_line, replaced

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.core.recording.encode import Lines
    from mcpspy.io.recording.recorder import Recorder

MAX_QUEUED = 1 << 20
"""Bytes that may wait to be taken before the server has to wait."""


class ReceivedMessage(NamedTuple):
    """A message, or on stdio a line that is none."""

    at: float
    """`time.monotonic()` when its last byte was here."""
    data: bytes
    """The server's own bytes, line end left out."""
    request: str | None = None
    """HTTP: JSON text of the id of the request whose exchange carried it; None on a stream that belongs to none."""
    http: int | None = None
    """HTTP: number of the exchange."""
    status: int = 200
    """HTTP: of 400 and up, it answers `request`, whatever id it has."""


class StderrLine(NamedTuple):
    """A line of the server's stderr."""

    at: float
    line: bytes


class ExchangeRefused(NamedTuple):
    """An HTTP exchange that ended without a message where one was due, or with an error for what needs no answer."""

    at: float
    request: str | None
    """JSON text of the id that gets no other answer than this; None of a notification, an answer, a GET."""
    http: int
    status: int
    why: str
    """For people, one line: `HTTP 401 Unauthorized` …"""
    is_session_lost: bool = False
    """The server knows the session no more (404): a new `initialize` begins another."""


class ExchangeLost(NamedTuple):
    """An exchange that broke, and cannot be taken up again: its request gets no answer."""

    at: float
    request: str | None
    """None of a GET stream, a notification, an answer."""
    http: int | None
    why: str
    """For people, one line."""


class ConnectionEnded(NamedTuple):
    """The last that is heard: the server has gone, or the connection was closed."""

    at: float
    code: int | None = None
    """stdio: its exit code …"""
    signal: str | None = None
    """… or the name of the signal that ended it."""
    why: str = ""
    """For people, one line."""


InboundEvent: TypeAlias = ReceivedMessage | StderrLine | ExchangeRefused | ExchangeLost | ConnectionEnded


class Inbound:
    """What was heard and is not taken yet."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[InboundEvent] = asyncio.Queue()
        self._size = 0
        self._has_space = asyncio.Event()
        self._has_space.set()
        self.on_space: Callable[[], None] | None = None
        """Called when there is room again."""

    @property
    def is_full(self) -> bool:
        """Whether the server should wait."""
        return self._size > MAX_QUEUED

    def put(self, event: InboundEvent) -> None:
        """Add what was heard."""
        self._size += _size(event)
        if self.is_full:
            self._has_space.clear()
        self._queue.put_nowait(event)

    async def get(self) -> InboundEvent:
        """Take the next, as soon as there is one."""
        event = await self._queue.get()
        self._size -= _size(event)
        if not self.is_full and not self._has_space.is_set():
            self._has_space.set()
            if self.on_space is not None:
                self.on_space()
        return event

    async def wait_for_space(self) -> None:
        """Wait until there is room."""
        await self._has_space.wait()


def _size(event: InboundEvent) -> int:
    if isinstance(event, ReceivedMessage):
        return len(event.data) + 64
    return len(event.line) + 64 if isinstance(event, StderrLine) else 0


LAST_WORDS = 10
"""Lines of stderr that are kept for a person."""


class ServerCommand(NamedTuple):
    """A server that is started."""

    arguments: list[str]


class ServerAddress(NamedTuple):
    """A server that runs somewhere."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: an Authorization …"""
    cacert: str | None = None
    """A PEM file: trust this authority, too."""
    insecure: bool = False
    """Do not check its certificate."""
    is_sse: bool | None = None
    """Whether it speaks HTTP+SSE (2024-11-05); None: by its path, which ends in `sse` then."""


ServerTarget: TypeAlias = ServerCommand | ServerAddress


class ServerConnection(ABC):
    """A connection, from its beginning to its end. Use it as an async context manager, or `close` it."""

    def __init__(self, name: str, recorder: Recorder | None) -> None:
        self.name = name
        """What to call the server: its command, or its URL."""
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        """The last lines of its stderr."""
        self.ended: ConnectionEnded | None = None
        """How it ended, once that is known; `hear` may not have given it yet."""
        self._recorder = recorder
        self._inbox = Inbound()

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send one message (or a batch): its JSON text. Never raises for what the server does.

        Returns once it is on its way; over HTTP, what needs no answer was
        taken or refused by then: a caller that has only so much time bounds it.
        """

    @abstractmethod
    async def close(self) -> None:
        """End it as SDK clients do; nothing is left of it afterwards. What was heard until then can still be taken."""

    async def hear(self) -> InboundEvent:
        """Return what is heard next. After an `Ended` there is nothing."""
        return await self._inbox.get()

    async def __aiter__(self) -> AsyncIterator[InboundEvent]:
        """Yield what is heard, `Ended` last."""
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

    def _hears(self, event: InboundEvent) -> None:
        if self.ended is not None:  # A grandchild may still hold a pipe, and write to it.
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
        """Return the time as the recording counts it."""
        return self._recorder.now() if self._recorder is not None else monotonic()


OURS = '"mcpspy-initialize"'
"""JSON text of the id."""

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def under_our_id(initialize: bytes) -> bytes:
    """Return a client's `initialize` under our id."""
    return replaced(one_line(initialize), ("id",), OURS.encode())
