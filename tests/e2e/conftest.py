"""Real peers, with and without mcpspy between them.

What they are called and where they are found is `recordings/make.py`'s, so that tests and recordings talk to the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mcpspy.core.protocol.message import Malformed, Message
from mcpspy.core.recording.decode import Damaged, Entry, Header, Note
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.tail import follow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

# For `recordings.make`, which no wheel holds. At the end, so that an installed mcpspy is the one that is tested.
sys.path.append(str(Path(__file__).resolve().parents[2]))

SECONDS = 40
"""A bound for one client's run. They give up by themselves after 30, and need 6 at most."""


class Played(NamedTuple):
    """What a client's caller saw of its run."""

    transcript: str
    complaints: str
    """The lines of stderr, sorted: client and server write them as they come."""
    code: int

    @classmethod
    def of(cls, out: str, err: str, code: int) -> Played:
        """Return it without the SDK client's working folder, a new one each time."""
        text = re.sub(r"/\S*/peer-\w+", "{dir}", err)
        return cls(out, "\n".join(sorted(text.splitlines())), code)


class Read(NamedTuple):
    """A recording, read to its end."""

    path: Path
    header: Header
    entries: list[Entry]
    session: Session

    @classmethod
    def of(cls, path: Path) -> Read:
        """Read a file; none of it may be left over."""
        recording = Recording(path)
        entries = list(recording)
        assert recording.torn == 0
        return cls(path, recording.header, entries, Session(recording.header).add_all(entries))

    def exchanges(self, method: str, subject: str | None = None) -> list[Exchange]:
        """Return those of a method, in their order; of a tool or a resource only, if it is named."""
        return [
            exchange
            for exchange in self.session.exchanges
            if exchange.request.method == method and subject in (None, exchange.request.subject)
        ]

    def notes(self, kind: str) -> list[Note]:
        """Return the notes of a kind, in their order."""
        return [entry for entry in self.entries if isinstance(entry, Note) and entry.kind == kind]

    def complaints(self) -> list[str]:
        """Return all that is wrong with it. Peers that are well, and a recorder that is, leave this empty."""
        found = [str(entry) for entry in self.entries if isinstance(entry, Damaged)]
        for change in self.session.changes:
            if isinstance(change.what, Message):
                flaws = (*change.what.flaws, *((change.flaw,) if change.flaw else ()))
                found += [f"{flaw}: {change.what.data!r}" for flaw in flaws]
                if isinstance(change.what, Malformed):
                    found.append(f"{change.what.why}: {change.what.data!r}")
            elif isinstance(change.what, Note) and not _is_ordinary(change.what):
                found.append(str(change.what))
        for exchange in self.session.exchanges:
            found += [f"{flaw}: {exchange.request.method}" for flaw in exchange.flaws]
            if exchange.state in (State.PENDING, State.UNANSWERED):
                found.append(f"{exchange.state}: {exchange.request.data!r}")
        return found + [f"pending: {exchange.request.data!r}" for exchange in self.session.pending]


ORDINARY = ("stderr", "eof", "signal", "exit", "http", "http-end", "sse")
"""Notes of a run in which nothing went wrong."""


def _is_ordinary(note: Note) -> bool:
    """Whether it is no complaint: a server that hangs up, or that cannot be reached, is one."""
    return (
        note.kind in ORDINARY
        and note.fields.get("hung_up") != "server"
        and not ("http" in note.fields and "error" in note.fields)
    )


class Peers:
    """Starts clients, each with the command of a server."""

    def __init__(
        self,
        folder: Path,
        commands: dict[str, list[str]],
        environment: dict[str, str],
        forking: Path | None = None,
    ) -> None:
        self.folder = folder
        """Where they all run."""
        self._forking = forking
        self._commands = commands
        self._environment = environment

    async def play(self, client: str, *server: str) -> Played:
        """Run a client (its name and options) with a server's command or URL, to its end."""
        name, *options = client.split()
        target = ("--", *server)
        if name == "inspector.sh" and server[0].startswith("http://"):
            # It takes what follows `--` for a command, and what follows `--tool-arg` for an argument.
            options, target = [server[0], *options], ()
        if name == "sdk.py" and self._forking is not None:
            return await self._forked(self._forking, *options, *target)
        process = await asyncio.create_subprocess_exec(
            *self._commands[name],
            *options,
            *target,
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
            pytest.fail(f"{client} was not done within {SECONDS} s", pytrace=False)
        return Played.of(out.decode(), err.decode(), process.returncode or 0)

    async def _forked(self, socket: Path, *arguments: str) -> Played:
        """Run sdk.py in a process that has its imports; it is run more often than all the others."""
        order = {"arguments": arguments, "folder": str(self.folder), "environment": self._environment}
        reader, writer = await asyncio.open_unix_connection(socket)
        try:
            writer.write(json.dumps(order).encode() + b"\n")
            async with asyncio.timeout(SECONDS):
                group = int(await reader.readline())
            try:
                async with asyncio.timeout(SECONDS):
                    ended = json.loads(await reader.read())
            except TimeoutError:
                os.killpg(group, signal.SIGKILL)
                pytest.fail(f"sdk.py {' '.join(arguments)} was not done within {SECONDS} s", pytrace=False)
        finally:
            writer.close()
            await writer.wait_closed()
        return Played.of(ended["out"], ended["err"], ended["code"])

    @asynccontextmanager
    async def proxied(
        self, upstream: str, listen: str = ":0", folder: str = "recorded"
    ) -> AsyncIterator[str]:
        """Run `mcpspy http` in front of a URL, recording into a folder; yield its own URL."""
        process = await asyncio.create_subprocess_exec(
            *("mcpspy", "http", "--upstream", upstream, "--listen", listen, "--record", f"{folder}/r.jsonl"),
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(SECONDS):
                text = (await process.stderr.readline()).decode()
                ready = re.fullmatch(r"mcpspy: (http://\S+) -> (\S+)\n", text)
                assert ready is not None, text
                assert ready[2] == upstream
                yield ready[1]
                process.terminate()
                _, rest = await process.communicate()
            assert (rest.decode(), process.returncode) == ("", 0)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    @asynccontextmanager
    async def mocked(self, *arguments: str, expected: str = "") -> AsyncIterator[str]:
        """Run `mcpspy mock … --http 0`; yield its URL. `says`: a pattern of all it says after that."""
        process = await asyncio.create_subprocess_exec(
            *("mcpspy", "mock", *arguments, "--http", "0"),
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    text = (await process.stderr.readline()).decode()
                    if (ready := re.fullmatch(r"mcpspy: (http://\S+) plays .+\n", text)) is not None:
                        break
                    assert text.startswith("mcpspy: "), text
                yield ready[1]
                process.terminate()
                _, rest = await process.communicate()
            assert re.fullmatch(expected, rest.decode(), re.DOTALL), rest.decode()
            assert process.returncode == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def recorded(self, name: str) -> list[Read]:
        """Wait for the recordings in a folder to end, and read them; the first to begin first."""
        found = []
        for path in (self.folder / name).glob("*.jsonl"):
            async with asyncio.timeout(SECONDS):
                followed = [entry async for entry in follow(path)]
            read = Read.of(path)
            assert read.entries == followed, "a recording says the same to who follows it"
            found.append(read)
        return sorted(found, key=lambda read: read.header.started)


@pytest.fixture(scope="session")
def forking() -> Iterator[Path]:
    """Run the process that runs of sdk.py are forked from: to import the SDK takes a second each time."""
    from recordings import make

    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    # Short, as sockets want it.
    folder = Path(tempfile.mkdtemp(prefix="mcpspy-", dir="/tmp"))
    process = subprocess.Popen(
        [make.PEERS / "venv" / "bin" / "python", make.CLIENTS / "forking.py", folder / "socket"],
        env=make.environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:  # Which closes its stdin at the end, and waits for it.
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield folder / "socket"
    shutil.rmtree(folder)


@pytest.fixture
def peers(tmp_path: Path, forking: Path) -> Peers:
    from recordings import make

    commands = {**make.COMMANDS, "oauth.py": ["python", str(make.CLIENTS / "oauth.py")]}
    return Peers(tmp_path, commands, make.environment(tmp_path), forking)


@pytest.fixture
def recording() -> Callable[[str], Read]:
    """Read a file of the folder recordings/."""
    from recordings import make

    return lambda name: Read.of(make.HERE / f"{name}.jsonl")
