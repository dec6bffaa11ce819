"""`mcpspy remote`: the sessions of this machine for another one, which starts it over ssh.

It writes what appears in the folder of recordings to stdout, and forwards connections to control sockets. It listens
on nothing, and ends with its stdin.

The frames between the two machines are a line of JSON, then as many bytes as its member `size`. From the machine with
the sessions: `hello`, `file` (announced, with `live`), `data` (with `at`), `gone`, `sockets` (all of them), `synced` (the
beginning of every file was sent), `received` and `closed` (of a connection). To it: `begin` (with `have`, the files of
the copy), `connect`, `send` and `close`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control.client import connected, find_session
from mcpspy.io.control.socket import PORT, SOCKET, socket_folders
from mcpspy.io.recording.writer import is_live
from mcpspy.io.settings import sessions_folder

PROTOCOL = 1
"""Version of the frames: both sides must have the same."""

HELLO = b'{"mcpspy_remote":'
"""The beginning of the first frame. Output of a login shell before it is skipped."""

CHUNK = 1 << 17
"""Maximum bytes of a file in one frame, so that others follow soon."""

TAIL = 4096
"""Bytes at the end of a copy by which its file is recognised after a lost connection."""

LONGEST = 1 << 20
"""Maximum bytes of a line."""


def encoded(fields: dict[str, Any], data: bytes = b"") -> bytes:
    """Return a frame."""
    return orjson.dumps({**fields, "size": len(data)} if data else fields) + b"\n" + data


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame; None at the end. Raises CannotStart for anything else."""
    try:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            return None
        fields = orjson.loads(line)
        size = int(fields.get("size", 0))
        return fields, await reader.readexactly(size) if 0 < size <= LONGEST else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (ValueError, TypeError, AttributeError):
        raise unknown_protocol() from None


def unknown_protocol() -> CannotStart:
    return CannotStart("the other side does not speak the protocol of mcpspy", "is its shell quiet?")


def checksum(tail: bytes) -> int:
    """Return the checksum of the end of a file, by which both sides see that they have the same one."""
    return zlib.crc32(tail)


POLL = 0.1
"""Seconds between two checks of live recordings."""

LIST_EVERY = 1.0
"""Seconds between two checks of the folder and of the sockets."""


class _File:
    """A recording, and how much of it was sent."""

    def __init__(self) -> None:
        self.sent = 0
        self.inode = 0
        self.is_live = True
        """The state that the other side has, or True to look again."""
        self.stamp = 0, 0
        """Size and time of modification when the folder was last listed."""


class RemoteServer:
    """Serves the sessions of a folder until its stdin ends."""

    def __init__(self, folder: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._folder = Path(folder)
        self._reader = reader
        self._writer = writer
        self._files: dict[str, _File] = {}
        self._have: dict[str, tuple[int, int]] = {}
        self._limit = 0
        self._connections: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[str] | None = None
        self._is_synced = False

    async def run(self) -> None:
        hello = {"mcpspy_remote": PROTOCOL, "version": __version__, "folder": str(self._folder)}
        await self._send(hello)
        following = asyncio.create_task(self._follow())
        try:
            while (frame := await read_frame(self._reader)) is not None:
                await self._take(*frame)
        finally:
            for task in (following, *self._tasks):
                task.cancel()
            await asyncio.gather(following, *self._tasks, return_exceptions=True)

    async def _send(self, fields: dict[str, Any], data: bytes = b"") -> None:
        self._writer.write(encoded(fields, data))
        await self._writer.drain()

    async def _take(self, fields: dict[str, Any], data: bytes) -> None:
        number = int(fields.get("c", 0))
        match fields.get("do"):
            case "begin":
                self._have = {
                    str(name): (int(size), int(crc)) for name, (size, crc) in fields["have"].items()
                }
                self._limit = int(fields["limit"])
            case "connect":
                task = asyncio.create_task(self._connect(number, str(fields["session"])))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case "send" if number in self._connections:
                self._connections[number].write(data)
            case "close" if number in self._connections:
                self._connections.pop(number).close()

    async def _connect(self, number: int, session: str) -> None:
        """Forward what a session sends, until one side closes the connection."""
        with suppress(OSError, McpspyError):
            connection = await asyncio.to_thread(lambda: connected(find_session(session)))
            connection.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=connection)
            self._connections[number] = writer
            try:
                await self._send({"event": "connected", "c": number})
                while data := await reader.read(CHUNK):
                    await self._send({"event": "received", "c": number}, data)
            finally:
                self._connections.pop(number, None)
                writer.close()
        await self._send({"event": "closed", "c": number})

    async def _follow(self) -> None:
        """Send what is new, until cancelled."""
        while not self._limit:  # noqa: ASYNC110 - the other side answers the hello at once.
            await asyncio.sleep(0.01)
        loop, looked = asyncio.get_running_loop(), 0.0
        while True:
            if loop.time() >= looked + LIST_EVERY:
                looked = loop.time()
                await self._list()
            is_more = False
            for name, file in list(self._files.items()):
                if file.is_live:
                    is_more |= await self._send_file(name, file)
            if not self._is_synced:
                self._is_synced = True
                await self._send({"event": "synced"})
            if not is_more:
                await asyncio.sleep(POLL)

    async def _list(self) -> None:
        """Announce new files, report deleted ones, and send the list of sockets if it has changed."""
        found = await asyncio.to_thread(_recordings, self._folder, self._files)
        for name in self._files.keys() - {name for name, *_ in found}:
            del self._files[name]
            await self._send({"event": "gone", "file": name})
        budget = self._limit
        for name, stamp, is_open in found:  # Live ones first, then the newest.
            budget -= stamp[0]
            if (known := self._files.get(name)) is not None:
                known.is_live |= known.stamp != stamp  # Read it again, at least once.
                known.stamp = stamp
            if known is not None or (budget < 0 and not is_open):
                continue
            file = self._files[name] = _File()
            file.stamp = stamp
            file.sent = await asyncio.to_thread(self._sent_before, name)
            await self._send({"event": "file", "file": name, "at": file.sent, "live": True})
        sockets = await asyncio.to_thread(_sockets)
        if sockets != self._sockets:
            self._sockets = sockets
            await self._send({"event": "sockets", "sessions": sockets})

    def _sent_before(self, name: str) -> int:
        """Return how much of a file the copy has from before the connection was lost."""
        size, crc = self._have.get(name, (0, 0))
        with suppress(OSError), open(self._folder / name, "rb") as file:
            file.seek(max(size - TAIL, 0))
            tail = file.read(min(size, TAIL))
            if size and len(tail) == min(size, TAIL) and checksum(tail) == crc:
                return size
        return 0

    async def _send_file(self, name: str, file: _File) -> bool:
        """Send the next bytes of a file; return whether there may be more."""
        try:
            is_open, inode, size, data = await asyncio.to_thread(_read, self._folder / name, file.sent)
        except OSError:  # It was deleted, or cannot be read; the next list reports it.
            return False
        if size < file.sent or (file.inode and inode != file.inode):  # Truncated or replaced.
            file.sent, file.inode = 0, inode
            await self._send({"event": "file", "file": name, "at": 0, "live": True})
            return True
        file.inode = inode
        if data:
            if b'"note":"part"' in data:  # The file that it names has to exist before.
                await self._list()
            await self._send({"event": "data", "file": name, "at": file.sent}, data)
            file.sent += len(data)
        is_complete = file.sent >= size
        if is_complete and is_open != file.is_live:
            file.is_live = is_open
            await self._send({"event": "file", "file": name, "at": file.sent, "live": is_open})
        return not is_complete


def _recordings(folder: Path, known: Mapping[str, _File]) -> list[tuple[str, tuple[int, int], bool]]:
    """Return the files that may be recordings, with size and time of modification, and whether they are live.

    Live ones come first, then the newest. Those that are known are not opened.
    """
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if not entry.name.endswith(".jsonl"):
                continue
            with suppress(OSError):
                stat = entry.stat()
                if (file := known.get(entry.name)) is not None:
                    is_open = file.is_live
                elif S_ISREG(stat.st_mode):
                    with open(entry.path, "rb") as opened:
                        is_open = is_live(opened.fileno())
                else:
                    continue
                found.append((not is_open, -stat.st_mtime_ns, entry.name, stat.st_size))
    return [(name, (size, -modified), not is_over) for is_over, modified, name, size in sorted(found)]


def _read(path: Path, at: int) -> tuple[bool, int, int, bytes]:
    """Return whether a file is live, its inode, its size, and its next bytes."""
    with open(path, "rb") as file:
        is_open = is_live(file.fileno())  # First: then everything that the writer wrote is visible below.
        stat = os.fstat(file.fileno())
        file.seek(at)
        return is_open, stat.st_ino, stat.st_size, file.read(CHUNK)


def _sockets() -> list[str]:
    """Return the ids of the sessions that have a control socket."""
    found: set[str] = set()
    for folder in socket_folders():
        with suppress(OSError):
            found.update(
                name.rpartition(".")[0] for name in os.listdir(folder) if name.endswith((SOCKET, PORT))
            )
    return sorted(found)


async def _serve(folder: str) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 21)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout.buffer)
    await RemoteServer(folder, reader, asyncio.StreamWriter(transport, protocol, reader, loop)).run()


def main(arguments: list[str]) -> int:
    """`mcpspy remote [DIR]`: serve the sessions of a folder on stdin and stdout. Not for users: see `--ssh`."""
    if sys.stdin.isatty():
        raise CannotStart(
            "remote: started by mcpspy tui --ssh HOST and mcpspy web --ssh HOST", "use one of them"
        )
    with suppress(BrokenPipeError, ConnectionError):
        asyncio.run(_serve(sessions_folder(arguments[0] if arguments else None)))
    return 0
