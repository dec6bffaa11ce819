"""Reaching into a live session, from the viewer's side.

Owns finding a session (by its id, its recording, or all of them), the greeting,
and which answer belongs to which order; events are kept until they are asked
for. Removes what dead sessions have left behind.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.core.framing import LineFramer
from mcpspy.core.message import loads
from mcpspy.core.rules.patch import written
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control import place
from mcpspy.io.control.door import PORT, SOCKET, knock
from mcpspy.io.control.room import LONGEST, VERSION
from mcpspy.io.store import read_header_of

GREETING = 2.0
"""Seconds a session has to say what it is: a stopped process never will."""

ANSWER = 10.0
"""Seconds it has for an order. What an order sends to a peer is not waited for."""


class Refused(McpspyError):  # noqa: N818 - reads as what it says at every raise.
    """The session has not done what it was told, and says why."""


class Session(NamedTuple):
    """A live session, as it introduces itself."""

    path: str
    """Where it is reached."""
    hello: dict[str, Any]


def find(which: str | os.PathLike[str]) -> str:
    """Return where a session is reached: by its id, or by its recording. Raises UsageError or CannotStart."""
    name = os.fspath(which)
    is_file = os.sep in name or name.endswith(".jsonl")
    session = read_header_of(Path(name)).id if is_file else name
    for folder in place.folders():
        for ending in (SOCKET, PORT):
            path = os.path.join(folder, session + ending)
            if os.path.exists(path):
                return path
    raise CannotStart(
        f"{name}: nobody answers for this session", "is it live? mcpspy send --list shows those that are"
    )


def sessions() -> list[Session]:
    """Return the live sessions of this user, the newest last; what dead ones have left is removed."""
    found = []
    for path in _files():
        try:
            with Visit(path) as visit:
                found.append(Session(path, visit.hello))
        except (OSError, McpspyError):  # Dead, and removed; or it ended meanwhile, or is stopped.
            continue
    return found


class Visit:
    """A connection to a session. Use it with `with`."""

    def __init__(self, path: str, viewer: str | None = None) -> None:
        """Connect, and be greeted; raise CannotStart. `viewer` is what notes in the recording call us."""
        self._numbers = 0
        self._framer = LineFramer()
        self._lines: deque[bytes] = deque()
        self._events: deque[dict[str, Any]] = deque()
        self._connection = _connected(path)
        try:
            self.hello = _greeted(self._line(time.monotonic() + GREETING), path)
            if viewer is not None:
                self.order("hello", viewer=viewer)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave: what we held goes on."""
        self._connection.close()

    def order(self, order: str, **fields: Any) -> dict[str, Any]:
        """Have something done; return the answer. Raises Refused, or CannotStart if nobody answers."""
        self._numbers += 1
        try:
            self._connection.settimeout(ANSWER)
            self._connection.sendall(order_line(self._numbers, order, fields))
        except OSError as error:
            raise _ended(error) from None
        deadline = time.monotonic() + ANSWER
        while True:
            line = self._line(deadline)
            if line is None:
                raise CannotStart(f"the session has not answered for {ANSWER:g} s", "is its mcpspy stopped?")
            said = _read(line)
            if "event" in said:
                self._events.append(said)
            elif said.get("n") == self._numbers:
                return accepted(said)

    def events(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield what happens, for so long, or until the session ends: the last event is `end` then."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if event["event"] == "end":
                    return
            try:
                line = self._line(deadline)
            except CannotStart:
                self._events.append({"event": "end"})
                continue
            if line is None:
                return
            said = _read(line)
            if "event" in said:
                self._events.append(said)

    def _line(self, deadline: float | None) -> bytes | None:
        """Return the next line; None if none came by then. Raises CannotStart at the end."""
        while not self._lines:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            self._connection.settimeout(left)
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError as error:
                raise _ended(error) from None
            if not data:
                raise _ended(None)
            self._lines += self._framer.feed(data)
        return self._lines.popleft()


class AsyncVisit:
    """The same on an event loop: orders may overlap, and events are a stream."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.hello = hello
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._is_over = False
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def open(cls, path: str, viewer: str | None = None) -> AsyncVisit:
        """Connect, and be greeted; raise CannotStart."""
        connection = await asyncio.to_thread(_connected, path)
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=4 * LONGEST)
        try:
            async with asyncio.timeout(GREETING):
                line = await reader.readline()
        except TimeoutError:
            line = b""
        except BaseException:
            writer.close()
            raise
        try:
            visit = cls(reader, writer, _greeted(line or None, path))
        except CannotStart:
            writer.close()
            raise
        if viewer is not None:
            await visit.order("hello", viewer=viewer)
        return visit

    async def order(self, order: str, **fields: Any) -> dict[str, Any]:
        """Have something done; return the answer. Raises Refused, or CannotStart if nobody answers."""
        if self._is_over:
            raise _ended(None)
        self._numbers += 1
        answer = self._waiting[self._numbers] = asyncio.get_running_loop().create_future()
        self._writer.write(order_line(self._numbers, order, fields))
        number = self._numbers
        try:
            async with asyncio.timeout(ANSWER):
                return accepted(await answer)
        except TimeoutError:
            raise CannotStart(
                f"the session has not answered for {ANSWER:g} s", "is its mcpspy stopped?"
            ) from None
        finally:
            self._waiting.pop(number, None)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what happens until the session ends: the last event is `end`."""
        while True:
            event = await self._events.get()
            yield event
            if event["event"] == "end":
                return

    async def close(self) -> None:
        """Leave: what we held goes on."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:  # It has gone first.
            pass

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                said = _read(line)
                if "event" in said:
                    self._events.put_nowait(said)
                elif (waiting := self._waiting.get(said.get("n", 0))) is not None and not waiting.done():
                    waiting.set_result(said)
        except (OSError, ValueError, CannotStart):  # It has gone, or speaks no such language.
            pass
        self._is_over = True
        self._events.put_nowait({"event": "end"})
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_ended(None))


def order_line(number: int, order: str, fields: dict[str, Any]) -> bytes:
    """Return an order as its line."""
    return dumped({"n": number, "order": order, **fields})


def dumped(value: Any) -> bytes:
    """Return a value as a line of JSON."""
    return written(value) + b"\n"


def accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer; raise Refused."""
    if not answer.get("ok"):
        raise Refused(str(answer.get("error", "refused")))
    return {key: value for key, value in answer.items() if key not in ("n", "ok")}


def _connected(path: str) -> socket.socket:
    try:
        return knock(path, GREETING)
    except FileNotFoundError:
        raise CannotStart("the session has ended", "mcpspy send --list shows those that are live") from None


def _greeted(line: bytes | None, path: str) -> dict[str, Any]:
    hello = {} if line is None else _read(line)
    if not isinstance(version := hello.get("mcpspy"), int):
        raise CannotStart(f"{path}: does not answer as a session does", "is its mcpspy stopped?")
    if version > VERSION:
        raise CannotStart("the session is of a newer mcpspy", "upgrade mcpspy and try again")
    return hello


def _read(line: bytes) -> dict[str, Any]:
    said = loads(line)
    if not isinstance(said, dict):
        raise CannotStart("what answers is no session of mcpspy")
    return said


def _ended(error: OSError | None) -> CannotStart:
    return CannotStart(
        "the session has ended" + (f": {error.strerror or error}" if error is not None else "")
    )


def _files() -> list[str]:
    """Return what leads to sessions, the newest last, from folders that are ours."""
    found = []
    for folder in place.folders():
        try:
            place.check(folder)
            entries = list(os.scandir(folder))
        except (OSError, CannotStart):  # There is none, or nobody should trust it.
            continue
        for entry in entries:
            if entry.name.endswith((SOCKET, PORT)):
                try:
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
                except OSError:  # It has just ended.
                    continue
    return [path for _, path in sorted(found)]
