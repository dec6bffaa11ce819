"""One client of the mock over HTTP: its conversation, and the streams its messages go out on.

Owns which stream carries a message, what is kept for a client that lost one, and the clock.
Sources: basic/transports, 2025-03-26 to 2025-11-25 ("Sending Messages", "Listening",
"Resumability and Redelivery"), and 2026-07-28 (a response stream that is closed is a
cancellation). HTTP's own forms are `http`'s.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile

from mcpspy.core.mock.session import Outgoing, Patient
from mcpspy.io.mock.upstream import Elsewhere, Real

KEPT = 1000
"""Messages of a stream that are kept for who comes back to it, and of the general one while nobody reads it."""

FINISHED = 16
"""Streams of one client that are kept after their end, for the same."""


class Stream:
    """Messages for a client, in their order, each under a number that no other stream of the client has."""

    def __init__(self, number: int, owed: int = 0) -> None:
        self.number = number
        """Of the event that names the stream before it has a message."""
        self.messages: deque[tuple[int, Outgoing]] = deque()
        self.owed = owed
        """Answers that are still to come."""
        self.is_over = False
        self.reader: object = None
        """Who writes it to the client; another that comes takes over."""
        self._more = asyncio.Event()

    def add(self, number: int, message: Outgoing) -> None:
        """Put a message at the end."""
        self.messages.append((number, message))
        self._more.set()

    def end(self) -> None:
        """Nothing more will come."""
        self.is_over = True
        self._more.set()

    def take_over(self) -> object:
        """Become the one who writes it to the client."""
        self.reader = object()
        self._more.set()
        return self.reader

    def has(self, number: int) -> bool:
        """Whether it is the stream of this number."""
        return number == self.number or any(its == number for its, _ in self.messages)

    def after(self, number: int) -> list[tuple[int, Outgoing]]:
        """Return what is there and has a higher number."""
        newer = sum(1 for _ in takewhile(lambda entry: entry[0] > number, reversed(self.messages)))
        return list(islice(self.messages, len(self.messages) - newer, None))

    def trim(self) -> None:
        """Let go of the oldest messages."""
        while len(self.messages) > KEPT:
            self.messages.popleft()

    async def more(self, seconds: float | None) -> bool:
        """Wait until something has changed since the last call; whether it has in time."""
        try:
            await asyncio.wait_for(self._more.wait(), seconds)
        except TimeoutError:
            return False
        self._more.clear()
        return True


class Visitor:
    """A client, from its first message on."""

    def __init__(
        self,
        conversation: Patient,
        complain: Callable[[str], None],
        real: Real | None = None,
        *,
        one_stream: bool = False,
    ) -> None:
        self.conversation = conversation
        self.elsewhere = None if real is None else Elsewhere(real, self._hear)
        self._number = 0
        self.general = Stream(self._next())
        """What belongs to no request: the GET stream."""
        self.is_over = False
        self._complain = complain
        self._one_stream = one_stream
        self._streams: dict[bytes, list[Stream]] = {}
        self._finished: deque[Stream] = deque(maxlen=FINISHED)
        self._receiving: Stream | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.flush()

    def post(self, body: bytes, ids: list[bytes]) -> Stream:
        """Take what the client sent, with the ids of the requests in it; return the stream of their answers."""
        stream = Stream(self._next(), len(ids))
        for id in ids:  # noqa: A001
            self._streams.setdefault(id, []).append(stream)
        self._receiving = stream
        self.conversation.receive(body, self._loop.time())
        for line in self.conversation.complaints():
            self._complain(line)
        self.flush()
        self._receiving = None
        return stream

    def flush(self) -> None:
        """Put what is due on its streams, and come again when more is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        relay = self.conversation.relay
        if relay is not None and self.elsewhere is not None:
            for data in relay.outgoing():
                self.elsewhere.send(data, relay.introduction)
        for message in self.conversation.take(now):
            self._route(message)
        due = self.conversation.next_at
        if due is not None and not self.is_over:
            self._timer = self._loop.call_at(due, self.flush)

    def go_on(self) -> None:
        """More of the recording has been read."""
        if self.conversation.waits:
            self.conversation.go_on(self._loop.time())
            self.flush()

    def hang_up(self, ids: list[bytes]) -> None:
        """A client of 2026-07-28 closed the response of these requests, and so cancelled them."""
        for id in ids:  # noqa: A001
            self._streams.pop(id, None)
            self.conversation.cancel(id.decode(), self._loop.time())
        self.flush()

    def stream_of(self, number: int) -> Stream | None:
        """Return the stream that has the message of this number, for a client that comes back to it."""
        waiting = (stream for streams in self._streams.values() for stream in streams)
        streams = (self.general, *self._finished, *waiting)
        return next((stream for stream in streams if stream.has(number)), None)

    def close(self) -> None:
        """The client ended its session, or its only stream."""
        self.is_over = True
        self.conversation.close(self._loop.time())
        self.flush()
        for stream in (self.general, *(one for streams in self._streams.values() for one in streams)):
            stream.end()

    def _hear(self, data: bytes) -> None:
        self.conversation.hear(data, self._loop.time())
        self.flush()

    def _route(self, message: Outgoing) -> None:
        stream = None if self._one_stream else self._stream(message)
        if stream is None:
            self.general.add(self._next(), message)
            if self.general.reader is None:
                self.general.trim()
            return
        stream.add(self._next(), message)
        if not message.is_answer:
            return
        stream.owed -= 1
        if message.request is not None:
            self._answered(message.request, stream)
        if stream.owed <= 0:
            stream.end()
            self._finished.append(stream)

    def _answered(self, id: bytes, stream: Stream) -> None:  # noqa: A002
        self._streams[id].remove(stream)
        if not self._streams[id]:
            del self._streams[id]

    def _stream(self, message: Outgoing) -> Stream | None:
        if message.request is not None:
            streams = self._streams.get(message.request)
            return streams[0] if streams else None
        # An answer to what has no id answers what is being read.
        return self._receiving if message.is_answer else None

    def _next(self) -> int:
        self._number += 1
        return self._number
