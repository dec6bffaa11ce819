"""One client of a server over HTTP: its session, and the streams that carry its messages.

Assigns messages to streams, stores messages for a lost stream, formats events, sends keepalive comments, and
schedules messages. Sources: basic/transports, 2025-03-26 to 2025-11-25 ("Sending Messages", "Listening",
"Resumability and Redelivery"), and 2026-07-28 (closing a response stream cancels it); HTML Living Standard, 9.2.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Protocol

from mcpspy.core.mock.session import Outgoing
from mcpspy.core.mock.steering import RequestNote
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.protocol.message import AnyMessage
from mcpspy.core.protocol.passthrough import Passthrough
from mcpspy.io.http.request import HttpRequest

MAX_STORED = 1000
"""Messages stored per stream for a client that resumes it, and for the general stream while it has no reader."""

FINISHED = 16
"""Number of ended streams per client that can be resumed."""

KEEPALIVE_SECONDS = 15.0
"""Seconds of silence on a stream after which a comment keeps the connection alive, as in SDK servers."""

PRIMED = "2025-11-25"
"""First revision in which an event without data names a stream before its first message."""


class ClientStream:
    """Messages for a client, in order. Each has a number that is unique among the client's streams."""

    def __init__(self, number: int, owed: int = 0) -> None:
        self.number = number
        """The number of the event that names the stream before its first message."""
        self.messages: deque[tuple[int, Outgoing]] = deque()
        self.owed = owed
        self.is_over = False
        self.is_cancelled = False
        """True if the client has cancelled the request, so that the stream ends without its response."""
        self.reader: object = None
        """The response that writes the stream to the client; a later one takes over."""
        self._more = asyncio.Event()

    def add(self, number: int, message: Outgoing) -> None:
        self.messages.append((number, message))
        self._more.set()

    def end(self) -> None:
        self.is_over = True
        self._more.set()

    def take_over(self) -> object:
        """Make the caller the reader of the stream."""
        self.reader = object()
        self._more.set()
        return self.reader

    def has(self, number: int) -> bool:
        return number == self.number or any(its == number for its, _ in self.messages)

    def after(self, number: int) -> list[tuple[int, Outgoing]]:
        newer = sum(1 for _ in takewhile(lambda entry: entry[0] > number, reversed(self.messages)))
        return list(islice(self.messages, len(self.messages) - newer, None))

    def trim(self) -> int:
        """Remove the messages beyond the limit. Return their number."""
        removed = max(0, len(self.messages) - MAX_STORED)
        for _ in range(removed):
            self.messages.popleft()
        return removed

    async def more(self, seconds: float | None) -> bool:
        """Wait for a change since the last call. Return whether there was one in time."""
        try:
            await asyncio.wait_for(self._more.wait(), seconds)
        except TimeoutError:
            return False
        self._more.clear()
        return True


class ClientSession(Protocol):
    """The messages of a session: a mock's, or those of a live server."""

    revision: str | None

    @property
    def passthrough(self) -> Passthrough | None:
        """Return the messages for the real server; None if there is none."""

    @property
    def owes(self) -> bool:
        """Return whether responses are due."""

    @property
    def waits(self) -> bool:
        """Return whether a message of the client waits for its response to be known."""

    @property
    def next_at(self) -> float | None:
        """Return the time at which the next message is due; None if none is scheduled."""

    def receive(self, data: bytes, now: float, messages: Sequence[AnyMessage] | None = None) -> None:
        """Handle a body of the client."""

    def receive_from_server(self, data: bytes, now: float) -> None:
        """Handle a line of the real server."""

    def take(self, now: float) -> Iterator[Outgoing]:
        """Yield the messages for the client that are due."""

    def cancel(self, id: str, now: float) -> None:  # noqa: A002
        """Cancel a request whose response the client has closed."""

    def resume(self, now: float) -> None:
        """Handle waiting messages, after more of the recordings was read."""

    def close(self, now: float) -> None:
        """End the session."""

    def complaints(self) -> list[str]:
        """Return the lines for the user since the last call."""

    def notes(self) -> list[RequestNote]:
        """Return what the requests since the last call got."""


class LiveConnection(Protocol):
    """The connection of one client to a real server."""

    def send(self, data: bytes, initialize: bytes | None) -> None:
        """Send a message. `initialize` is the client's own, if it was not sent this way."""

    async def close(self) -> None:
        """End the connection."""


class Connects(Protocol):
    """A real server to which clients are connected."""

    def connection(self, receive: Callable[[bytes], None]) -> LiveConnection:
        """Return the connection of a client. `receive` gets the server's messages."""


class ServedClient:
    """A client of a mock, or of a live server."""

    def __init__(
        self,
        session: ClientSession,
        complain: Callable[[str], None],
        real: Connects | None = None,
        *,
        one_stream: bool = False,
    ) -> None:
        self.session = session
        self.number = 0
        """Number of the client in notes."""
        self.note: Callable[[Mapping[str, Any]], None] | None = None
        """Takes the notes on what its requests got."""
        self.real_server = None if real is None else real.connection(self._receive_from_server)
        self.dropped: Callable[[], None] | None = None
        """Called when the first message is dropped because the client has no GET stream."""
        self._number = 0
        self.general = ClientStream(self._next())
        """The GET stream, for messages that belong to no request."""
        self.is_over = False
        self._complain = complain
        self._one_stream = one_stream
        self._streams: dict[bytes, list[ClientStream]] = {}
        self._finished: deque[ClientStream] = deque(maxlen=FINISHED)
        self._receiving: ClientStream | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.flush()

    def post(
        self, body: bytes, ids: list[bytes], messages: Sequence[AnyMessage] | None = None
    ) -> ClientStream:
        """Handle a body. Return the stream of its responses."""
        stream = ClientStream(self._next(), len(ids))
        for id in ids:  # noqa: A001
            self._streams.setdefault(id, []).append(stream)
        self._receiving = stream
        self.session.receive(body, self._loop.time(), messages)
        self.flush()
        self._receiving = None
        return stream

    def flush(self) -> None:
        """Add the due messages to their streams, and schedule the next flush."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        for line in self.session.complaints():
            self._complain(line)
        for note in self.session.notes():
            if self.note is not None:
                self.note({"client": self.number, **note.fields})
        passthrough = self.session.passthrough
        if passthrough is not None and self.real_server is not None:
            for data in passthrough.take_outgoing():
                self.real_server.send(data, passthrough.initialize)
        for message in self.session.take(now):
            self._route(message)
        due = self.session.next_at
        if due is not None and not self.is_over:
            self._timer = self._loop.call_at(due, self.flush)

    def resume(self) -> None:
        if self.session.waits:
            self.session.resume(self._loop.time())
            self.flush()

    def hang_up(self, ids: list[bytes]) -> None:
        """Cancel requests whose response a client of 2026-07-28 closed."""
        for id in ids:  # noqa: A001
            self._streams.pop(id, None)
            self.session.cancel(id.decode(), self._loop.time())
        self.flush()

    def end_cancelled(self, id: bytes) -> None:  # noqa: A002
        """End the streams of a request that the client has cancelled: it expects no response (basic/utilities)."""
        for stream in self._streams.pop(id, ()):
            stream.owed -= 1
            if stream.owed <= 0:
                stream.is_cancelled = True
                stream.end()

    def stream_of(self, number: int) -> ClientStream | None:
        """Return the stream with the message of this number, for a client that resumes it."""
        waiting = (stream for streams in self._streams.values() for stream in streams)
        streams = (self.general, *self._finished, *waiting)
        return next((stream for stream in streams if stream.has(number)), None)

    def close(self) -> None:
        """End the session, or the client's only stream."""
        self.is_over = True
        self.session.close(self._loop.time())
        self.flush()
        for stream in (self.general, *(one for streams in self._streams.values() for one in streams)):
            stream.end()

    def _receive_from_server(self, data: bytes) -> None:
        self.session.receive_from_server(data, self._loop.time())
        self.flush()

    def _route(self, message: Outgoing) -> None:
        stream = None if self._one_stream else self._stream(message)
        if stream is None:
            self.general.add(self._next(), message)
            if self.general.reader is None and self.general.trim() and self.dropped is not None:
                dropped, self.dropped = self.dropped, None
                dropped()
            return
        stream.add(self._next(), message)
        if not message.is_answer:
            return
        stream.owed = max(0, stream.owed - 1)
        if message.request is not None:
            self._streams[message.request].remove(stream)
            if not self._streams[message.request]:
                del self._streams[message.request]
        if stream.owed <= 0:
            stream.end()
            self._finished.append(stream)

    def _stream(self, message: Outgoing) -> ClientStream | None:
        if message.request is not None:
            streams = self._streams.get(message.request)
            return streams[0] if streams else None
        # A response without an id answers the body that is being read.
        return self._receiving if message.is_answer else None

    def _next(self) -> int:
        self._number += 1
        return self._number


async def write_stream(
    request: HttpRequest,
    stream: ClientStream,
    last: int,
    preface: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    is_numbered: bool = True,
) -> None:
    """Send the messages of a stream after number `last`, until it ends or another response takes it over."""
    reader = stream.take_over()
    try:
        request.start(200, {"Content-Type": EVENTS, "Cache-Control": "no-cache", **(headers or {})}.items())
        if preface:
            await request.write(preface)
        while stream.reader is reader:
            new = stream.after(last)
            if new:
                last = new[-1][0]
                written = [_event(number if is_numbered else None, message) for number, message in new]
                await request.write(b"".join(written))
                stream.trim()
            elif stream.is_over:
                break
            elif not await stream.more(KEEPALIVE_SECONDS):
                await request.write(b": keepalive\n\n")
        request.send_end()
    finally:
        if stream.reader is reader:
            stream.reader = None


def priming_event(client: ServedClient, stream: ClientStream) -> bytes:
    """Return the event that names a stream before its first message, or nothing for clients of older revisions."""
    is_known = (client.session.revision or "") >= PRIMED
    return b"id: %d\ndata: \n\n" % stream.number if is_known else b""


def _event(number: int | None, message: Outgoing) -> bytes:
    name = b"" if number is None else b"id: %d\n" % number
    return b"event: message\n%bdata: %b\n\n" % (name, message.data)
