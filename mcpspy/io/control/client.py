"""The client side of the control protocol: commands and their errors, two clients, live sessions.

One client is blocking, one asynchronous. Both match responses to commands and queue events. Live sessions are found by
id or by recording; the files of dead ones are removed. Specification: docs/control.md.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.core.framing import LineFramer
from mcpspy.core.protocol.message import loads
from mcpspy.core.rules.edit import to_json
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control.server import MAX_LINE, VERSION
from mcpspy.io.control.socket import PORT, SOCKET, check_private, connect, socket_folders
from mcpspy.io.recording.reader import read_header_of

GREETING_TIMEOUT = 2.0
"""Seconds to wait for the greeting. A suspended process never sends it."""

RESPONSE_TIMEOUT = 10.0
"""Seconds to wait for a response. A session does not wait for the peers to which a command sends a message."""


class CommandRefused(McpspyError):  # noqa: N818 - an outcome, not an error.
    """The session has refused a command. The text is the reason."""


def dumped(value: Any) -> bytes:
    return to_json(value) + b"\n"


def accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a response. Raise CommandRefused."""
    if not answer.get("ok"):
        raise CommandRefused(str(answer.get("error", "refused")))
    return {key: value for key, value in answer.items() if key not in ("n", "ok")}


def connected(path: str) -> socket.socket:
    """Return a socket that is connected to a session. Raise CannotStart."""
    try:
        return connect(path, GREETING_TIMEOUT)
    except FileNotFoundError:
        raise CannotStart("the session has ended", "mcpspy send --list shows the live sessions") from None


def greeted(line: bytes | None, path: str) -> dict[str, Any]:
    """Return the greeting of a session. Raise CannotStart if it is missing or invalid."""
    hello = {} if line is None else read(line)
    if not isinstance(version := hello.get("mcpspy"), int):
        raise CannotStart(f"{path}: no valid greeting from the session", "is its mcpspy suspended?")
    if version > VERSION:
        raise CannotStart("the session belongs to a newer mcpspy", "upgrade mcpspy and try again")
    return hello


def read(line: bytes) -> dict[str, Any]:
    """Return a response or an event. Raise CannotStart if it is neither."""
    message = loads(line)
    if not isinstance(message, dict):
        raise CannotStart("the peer is not an mcpspy session")
    return message


def unanswered() -> CannotStart:
    return CannotStart(f"the session did not respond in {RESPONSE_TIMEOUT:g} s", "is its mcpspy suspended?")


def ended(error: OSError | None) -> CannotStart:
    return CannotStart(
        "the session has ended" + (f": {error.strerror or error}" if error is not None else "")
    )


class ControlClient:
    """A blocking connection to a session. Use it with `with`."""

    def __init__(self, path: str, viewer: str | None = None) -> None:
        """Connect to a session. Raise CannotStart. `viewer` is the name used in notes of the recording."""
        self._numbers = 0
        self._framer = LineFramer()
        self._lines: deque[bytes] = deque()
        self._events: deque[dict[str, Any]] = deque()
        self._socket = connected(path)
        try:
            self.hello = greeted(self._line(time.monotonic() + GREETING_TIMEOUT), path)
            if viewer is not None:
                self.order("hello", viewer=viewer)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. The session releases the messages that this viewer held."""
        self._socket.close()

    def order(self, order: str, **fields: Any) -> dict[str, Any]:
        """Send a command and return the response. Raise CommandRefused, or CannotStart if there is no response."""
        self._numbers += 1
        try:
            self._socket.settimeout(RESPONSE_TIMEOUT)
            self._socket.sendall(dumped({"n": self._numbers, "order": order, **fields}))
        except OSError as error:
            raise ended(error) from None
        deadline = time.monotonic() + RESPONSE_TIMEOUT
        while True:
            line = self._line(deadline)
            if line is None:
                raise unanswered()
            message = read(line)
            if "event" in message:
                self._events.append(message)
            elif message.get("n") == self._numbers:
                return accepted(message)

    def events(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield events for N seconds, or until the session ends; then the last event is `end`."""
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
            message = read(line)
            if "event" in message:
                self._events.append(message)

    def _line(self, deadline: float | None) -> bytes | None:
        """Return the next line, or None if none arrived before the deadline. Raise CannotStart at the end."""
        while not self._lines:
            on_disconnect = None if deadline is None else deadline - time.monotonic()
            if on_disconnect is not None and on_disconnect <= 0:
                return None
            self._socket.settimeout(on_disconnect)
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError as error:
                raise ended(error) from None
            if not data:
                raise ended(None)
            self._lines += self._framer.feed(data)
        return self._lines.popleft()


class AsyncControlClient:
    """A connection on an event loop. Commands may overlap."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.hello = hello
        self._numbers = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._is_over = False
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def open(cls, path: str, viewer: str | None = None) -> AsyncControlClient:
        """Connect to a session. Raise CannotStart."""
        connection = await asyncio.to_thread(connected, path)
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=4 * MAX_LINE)
        line = b""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(GREETING_TIMEOUT):
                    line = await reader.readline()
            client = cls(reader, writer, greeted(line or None, path))
        except BaseException:
            writer.close()
            raise
        if viewer is not None:
            try:
                await client.order("hello", viewer=viewer)
            except BaseException:
                await client.close()
                raise
        return client

    async def order(self, order: str, **fields: Any) -> dict[str, Any]:
        """Send a command and return the response. Raise CommandRefused, or CannotStart if there is no response."""
        if self._is_over:
            raise ended(None)
        self._numbers += 1
        answer = self._pending[self._numbers] = asyncio.get_running_loop().create_future()
        self._writer.write(dumped({"n": self._numbers, "order": order, **fields}))
        number = self._numbers
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT):
                return accepted(await answer)
        except TimeoutError:
            raise unanswered() from None
        finally:
            self._pending.pop(number, None)

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield events until the session ends. The last event is `end`."""
        while True:
            event = await self._events.get()
            yield event
            if event["event"] == "end":
                return

    async def close(self) -> None:
        """Disconnect. The session releases the messages that this viewer held."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()
        with suppress(OSError):  # The session closed the connection first.
            await self._writer.wait_closed()

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                message = read(line)
                if "event" in message:
                    self._events.put_nowait(message)
                elif (pending := self._pending.get(message.get("n", 0))) is not None and not pending.done():
                    pending.set_result(message)
        except (OSError, ValueError, CannotStart):  # The session has ended, or does not speak the protocol.
            pass
        self._is_over = True
        self._events.put_nowait({"event": "end"})
        for pending in self._pending.values():
            if not pending.done():
                pending.set_exception(ended(None))


MOST_FOLDERS = 3
"""Maximum number of other folders that an error names."""


class LiveSession(NamedTuple):
    """A live session and its greeting."""

    path: str
    """Path of the control socket."""
    hello: dict[str, Any]

    @property
    def folder(self) -> str:
        """Return the folder of its recording, or, if it records nothing, the folder it would record to."""
        # An older mcpspy sends no folder.
        return str(self.hello.get("folder") or os.path.dirname(self.hello.get("file") or ""))

    def is_in(self, folder: str) -> bool:
        return bool(self.folder) and os.path.realpath(self.folder) == os.path.realpath(folder)

    def is_called(self, name: str) -> bool:
        """Return True for `last`, its name, its id, or the beginning of its id."""
        session = str(self.hello["session"])
        return name in ("last", session, self.hello["name"]) or (len(name) >= 2 and session.startswith(name))


def find_session(which: str | os.PathLike[str]) -> str:
    """Return the control socket of a session, given its id or its recording. Raises UsageError or CannotStart."""
    name = os.fspath(which)
    is_file = os.sep in name or name.endswith(".jsonl")
    session = read_header_of(Path(name)).id if is_file else name
    for folder in socket_folders():
        for ending in (SOCKET, PORT):
            path = os.path.join(folder, session + ending)
            if os.path.exists(path):
                return path
    raise CannotStart(f"{name}: not a live session", "mcpspy send --list shows the live sessions")


def live_sessions() -> list[LiveSession]:
    """Return the live sessions of this user, the newest last. Remove the files of dead ones."""
    found = []
    for path in _socket_files():
        try:
            with ControlClient(path) as client:
                found.append(LiveSession(path, client.hello))
        except (OSError, McpspyError):  # The session is dead, has just ended, or is suspended.
            continue
    return found


def missing_session(
    folder: str, found: Sequence[LiveSession], subject: str = "no live session"
) -> CannotStart:
    """Return the error for a folder without the session that was asked for, given those of other folders."""
    message = f"{subject} in {folder}"
    if not found:
        return CannotStart(message, "start one with mcpspy run -- COMMAND")
    others = list(dict.fromkeys(session.folder for session in found))
    place = "another folder" if len(others) == 1 else f"{len(others)} other folders"
    several = "session" if len(found) == 1 else "sessions"
    more = " …" if len(others) > MOST_FOLDERS else ""
    options = " or ".join(f"--dir {shlex.quote(other)}" for other in others[:MOST_FOLDERS])
    return CannotStart(f"{message}; {len(found)} live {several} in {place}: use {options}{more}")


def _socket_files() -> list[str]:
    """Return the control sockets, the newest last, from folders to which only this user can write."""
    found = []
    for folder in socket_folders():
        try:
            check_private(folder)
            entries = list(os.scandir(folder))
        except (OSError, CannotStart):  # The folder does not exist, or is not private.
            continue
        for entry in entries:
            if entry.name.endswith((SOCKET, PORT)):
                try:
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
                except OSError:  # The session has just ended.
                    continue
    return [path for _, path in sorted(found)]
