"""A live server, as its client reaches it, whatever lies between.

Owns what all transports have in common: messages go out by `send`, whatever
is heard comes in by `hear`, and after `close` nothing is left of it. What a
message means is its caller's; a transport looks at one as far as it has to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from mcpspy.io.connect.heard import Complaint, Ended, Event, Inbox

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.core.recording.encode import Lines
    from mcpspy.io.recorder import Recorder

LAST_WORDS = 10
"""Lines of stderr that are kept for a person."""


class Command(NamedTuple):
    """A server that is started."""

    arguments: list[str]


class Address(NamedTuple):
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


Target: TypeAlias = Command | Address


class Connection(ABC):
    """A connection, from its beginning to its end. Use it as an async context manager, or `close` it."""

    def __init__(self, name: str, recorder: Recorder | None) -> None:
        self.name = name
        """What to call the server: its command, or its URL."""
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        """The last lines of its stderr."""
        self.ended: Ended | None = None
        """How it ended, once that is known; `hear` may not have given it yet."""
        self._recorder = recorder
        self._inbox = Inbox()

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send one message (or a batch): its JSON text. Never raises for what the server does.

        Returns once it is on its way; over HTTP, what needs no answer was
        taken or refused by then: a caller that has only so much time bounds it.
        """

    @abstractmethod
    async def close(self) -> None:
        """End it as SDK clients do; nothing is left of it afterwards. What was heard until then can still be taken."""

    async def hear(self) -> Event:
        """Return what is heard next. After an `Ended` there is nothing."""
        return await self._inbox.get()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield what is heard, `Ended` last."""
        while True:
            event = await self.hear()
            yield event
            if isinstance(event, Ended):
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _hears(self, event: Event) -> None:
        if self.ended is not None:  # A grandchild may still hold a pipe, and write to it.
            return
        if isinstance(event, Complaint):
            self.last_words.append(event.line.decode("utf-8", "backslashreplace"))
        elif isinstance(event, Ended):
            self.ended = event
        self._inbox.put(event)

    def _record(self, lines: Lines) -> None:
        if self._recorder is not None and lines:
            self._recorder.write(lines)

    def _now(self) -> float:
        """Return the time as the recording counts it."""
        return self._recorder.now() if self._recorder is not None else monotonic()
