"""A copy of another machine's recordings, and its control sockets, over ssh.

The copy has the same bytes, and is locked like a file that is being recorded, so that all readers work unchanged. A
connection to a socket of the copy is forwarded. The folder is private, and deleted at the end.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from mcpspy import __version__
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND, CannotStart, McpspyError, UsageError
from mcpspy.io.control.socket import SOCKET, is_same_user
from mcpspy.io.remote.server import (
    CHUNK,
    HELLO,
    PROTOCOL,
    TAIL,
    checksum,
    encoded,
    read_frame,
    unknown_protocol,
)

LIMIT = 1 << 30
"""Bytes of ended sessions that are copied, the newest first. Live ones always are."""

RETRY = (1.0, 2.0, 5.0, 10.0)
"""Seconds before each attempt to connect again; the last one repeats."""

GREETING = 60.0
"""Seconds for the login, which may ask for a password."""

PATIENCE = 2.0
"""Seconds for ssh to end by itself."""

PREFIX = "mcpspy-ssh-"
"""Beginning of the names of copies, in the folder for temporary files."""

_FILE = re.compile(r"[^/\\\0]+\.jsonl")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")

Report = Callable[[str], None]


class Mirror:
    """The sessions of another machine, in a folder of this one. Use it with `with`."""

    def __init__(
        self, host: str, folder: str | None, report: Report, ssh: tuple[str, ...] = ("ssh",)
    ) -> None:
        """`folder` is that of the other machine; `report` is called, in another thread, when the connection changes."""
        if host.startswith("-") or not host:
            raise UsageError(f"--ssh {host}: not a host", "use HOST, USER@HOST or ssh://USER@HOST:PORT")
        if sys.platform == "win32":
            raise CannotStart("--ssh needs Unix sockets", "run it in WSL")
        self.host = host
        self.report = report
        self._ssh = ssh
        words = ["mcpspy", "remote", *([folder] if folder is not None else [])]
        # pipx and uv install to this folder, which a shell without a login may not search.
        self._command = shlex.join(["sh", "-c", f'PATH="$PATH:$HOME/.local/bin" exec {shlex.join(words)}'])
        _sweep()
        self._base = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self._base)
        self.folder = self._base / "sessions"
        self.runtime = self._base / "live"
        for each in (self.folder, self.runtime):
            each.mkdir(mode=0o700)
        self._files: dict[str, int] = {}
        """Name of a copied file → its descriptor."""
        self._announced: set[str] = set()
        """Files that the other machine has, since the last connection."""
        self._listening: dict[str, asyncio.AbstractServer] = {}
        self._connections: dict[int, asyncio.StreamWriter] = {}
        self._numbers = 0
        self._attempts = 0
        """Attempts to connect since the connection was lost."""
        self._to_ssh: asyncio.StreamWriter | None = None
        self._synced = threading.Event()
        self._trouble: McpspyError | None = None
        self._thread = threading.Thread(target=self._run, name="ssh", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def _die(self, number: int, _frame: object) -> None:
        """Delete the copy, and end by the signal."""
        shutil.rmtree(self._base, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def __enter__(self) -> Mirror:
        """Connect, and wait until the beginning of each session is copied. Raises CannotStart or UsageError."""
        os.environ["MCPSPY_RUNTIME"] = str(self.runtime)
        for number in (signal.SIGHUP, signal.SIGTERM):
            if (
                threading.current_thread() is threading.main_thread()
                and signal.getsignal(number) is signal.SIG_DFL
            ):
                signal.signal(number, self._die)
        self._thread.start()
        try:
            self._synced.wait()
        except KeyboardInterrupt:
            self.close()
            raise
        if self._trouble is not None:
            self.close()
            raise self._trouble
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect and delete the copy."""
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # It has ended by itself.
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread.is_alive():
            self._thread.join(10.0)
        shutil.rmtree(self._base, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                asyncio.run(self._keep())
        except McpspyError as error:
            self._trouble = error
        except OSError as error:
            self._trouble = CannotStart(f"--ssh {self.host}: {error.strerror or error}")
        finally:
            self._synced.set()

    async def _keep(self) -> None:
        """Stay connected until cancelled. Raises CannotStart if the first connection fails."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            while True:
                try:
                    await self._connect()
                except CannotStart as error:
                    if not self._synced.is_set():
                        raise
                    if not self._attempts:
                        self.report(f"{error.args[0]}; connecting again …")
                await asyncio.sleep(RETRY[min(self._attempts, len(RETRY) - 1)])
                self._attempts += 1
        finally:
            for server in self._listening.values():
                server.close()
            for fd in self._files.values():
                os.close(fd)

    async def _connect(self) -> NoReturn:
        """Copy until the connection ends. Raises CannotStart at its end, with the reason."""
        again = ["-oBatchMode=yes"] if self._synced.is_set() else []  # No prompt may write over the screen.
        ssh = [*self._ssh, "-T", "-oServerAliveInterval=5", *again, "--", self.host, self._command]
        try:
            process = await asyncio.create_subprocess_exec(
                *ssh,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=1 << 21,
                start_new_session=self._synced.is_set(),
            )
        except FileNotFoundError:
            raise CannotStart(f"--ssh: no program {ssh[0]}", "install OpenSSH") from None
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        stderr = asyncio.create_task(process.stderr.read())
        is_greeted = False
        try:
            async with asyncio.timeout(GREETING):
                is_greeted = await self._greeted(process.stdout)
            if is_greeted:
                if self._synced.is_set():
                    self.report(f"connected to {self.host} again")
                self._attempts = 0
                self._to_ssh = process.stdin
                self._announced.clear()
                self._send({"do": "begin", "have": self._copied(), "limit": LIMIT})
                while (frame := await read_frame(process.stdout)) is not None:
                    await self._take(*frame)
        except TimeoutError:
            raise CannotStart(f"--ssh {self.host}: no answer within {GREETING:.0f} s") from None
        except (KeyError, TypeError, ValueError):  # A frame without its fields, or a line without end.
            raise unknown_protocol() from None
        finally:
            self._to_ssh = None
            for number in list(self._connections):
                self._connections.pop(number).close()
            process.stdin.close()
            code = await _ended(process)
            said = (await stderr).decode("utf-8", "replace").strip().splitlines()
        raise self._reason(code, said, is_greeted=is_greeted)

    async def _greeted(self, reader: asyncio.StreamReader) -> bool:
        """Wait for the first frame; return False if there is none. Raises CannotStart for another protocol."""
        while line := await reader.readline():
            if line.startswith(HELLO):
                found = re.match(rb'(\d+),"version":"([^"]*)"', line.removeprefix(HELLO))
                number, version = found.groups() if found is not None else (b"?", b"?")
                if number == b"%d" % PROTOCOL:
                    return True
                raise CannotStart(
                    f"--ssh {self.host}: mcpspy {sanitize(version.decode())} there and {__version__} here do not"
                    " understand each other",
                    "install the same version on both machines",
                )
        return False

    def _reason(self, code: int, said: list[str], *, is_greeted: bool) -> CannotStart:
        last = sanitize(said[-1]) if said else ""
        if is_greeted:
            return CannotStart(f"lost the connection to {self.host}" + (f" ({last})" if last else ""))
        if code in (NOT_EXECUTABLE, NOT_FOUND):
            return CannotStart(
                f"--ssh {self.host}: no program mcpspy there",
                "install it there, for example: pipx install mcpspy",
            )
        if "unknown command remote" in last:
            return CannotStart(
                f"--ssh {self.host}: the mcpspy there is too old", "install the same version on both machines"
            )
        return CannotStart(f"--ssh {self.host}: {last or f'ssh ended with {code}'}")

    def _send(self, fields: dict[str, Any], data: bytes = b"") -> None:
        if self._to_ssh is not None:
            self._to_ssh.write(encoded(fields, data))

    def _copied(self) -> dict[str, tuple[int, int]]:
        """Return the size of each copied file, and the checksum of its end."""
        have = {}
        for name, fd in self._files.items():
            size = os.fstat(fd).st_size
            have[name] = size, checksum(os.pread(fd, min(size, TAIL), max(size - TAIL, 0)))
        return have

    async def _take(self, fields: dict[str, Any], data: bytes) -> None:
        number, name = int(fields.get("c", 0)), str(fields.get("file", ""))
        # The other machine chooses no other files of this one.
        if name and not _FILE.fullmatch(name):
            return
        match fields.get("event"):
            case "file":
                self._announce(name, int(fields["at"]), is_live=bool(fields["live"]))
            case "data" if name in self._files:
                os.pwrite(self._files[name], data, int(fields["at"]))
            case "gone":
                self._delete(name)
            case "sockets":
                await self._listen({each for each in fields["sessions"] if _SESSION.fullmatch(str(each))})
            case "received" if number in self._connections:
                self._connections[number].write(data)
            case "closed" if number in self._connections:
                self._connections.pop(number).close()
            case "synced":
                for deleted in self._files.keys() - self._announced:
                    self._delete(deleted)
                self._synced.set()

    def _delete(self, name: str) -> None:
        if name in self._files:
            os.close(self._files.pop(name))
            (self.folder / name).unlink(missing_ok=True)

    def _announce(self, name: str, at: int, *, is_live: bool) -> None:
        """Create a file, or cut it to the bytes that the other machine has sent; lock it while it is live."""
        import fcntl

        self._announced.add(name)
        fd = self._files.get(name)
        if fd is None:
            fd = self._files[name] = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(fd).st_size > at:
            os.ftruncate(fd, at)
        fcntl.flock(fd, fcntl.LOCK_EX if is_live else fcntl.LOCK_UN)

    async def _listen(self, sessions: set[str]) -> None:
        """Have a socket for each live session of the other machine, and no others."""
        for session in self._listening.keys() - sessions:
            self._listening.pop(session).close()
            (self.runtime / f"{session}{SOCKET}").unlink(missing_ok=True)
        for session in sessions - self._listening.keys():
            path = self.runtime / f"{session}{SOCKET}"
            with suppress(OSError):  # A path too long for a socket.
                self._listening[session] = await asyncio.start_unix_server(self._accepted(session), path)
                path.chmod(0o600)

    def _accepted(self, session: str) -> Any:
        """Return the handler of connections to the socket of a session."""

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._to_ssh is None or not is_same_user(writer.get_extra_info("socket")):
                writer.close()
                return
            self._numbers += 1
            number = self._numbers
            self._connections[number] = writer
            self._send({"do": "connect", "c": number, "session": session})
            with suppress(ConnectionError):
                while data := await reader.read(CHUNK):
                    self._send({"do": "send", "c": number}, data)
            if self._connections.pop(number, None) is not None:
                self._send({"do": "close", "c": number})
            writer.close()

        return forward


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Return the exit code of ssh, which ends with its stdin, or is ended after a moment."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await process.wait()
    except TimeoutError:
        # Not before: a signal to a process that has just ended would lose its exit code.
        with suppress(ProcessLookupError):
            process.terminate()
        return await process.wait()


def _lock(folder: Path) -> int | None:
    """Lock a folder until this process ends; return None if another process has locked it."""
    import fcntl

    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _sweep() -> None:
    """Delete the copies of processes of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if (
                stat.S_ISDIR(found.st_mode)
                and found.st_uid == os.getuid()
                and (fd := _lock(folder)) is not None
            ):
                shutil.rmtree(folder, ignore_errors=True)
                os.close(fd)
