"""Real peers, with and without mcpspy between them.

`recordings/make.py` defines their commands and locations, so that tests and recordings use the same peers.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
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
from tests.strict import strict_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

# For `recordings.make`, which is not in a wheel. At the end of the path, so that an installed mcpspy is tested.
sys.path.append(str(Path(__file__).resolve().parents[2]))

SECONDS = 40
"""Limit for one run of a client. Clients give up after 30 seconds, and need at most 6."""


class Played(NamedTuple):
    """The outcome of one client run, as its caller sees it."""

    transcript: str
    complaints: str
    """The lines of stderr, sorted, because client and server write concurrently."""
    code: int

    @classmethod
    def of(cls, out: str, err: str, code: int) -> Played:
        """Return the outcome without the SDK client's working folder, which differs from run to run."""
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
        """Read a file completely."""
        for line in path.read_bytes().split(b"\n")[:-1]:
            strict_json(line)
        recording = Recording(path)
        entries = list(recording)
        assert recording.torn == 0
        return cls(path, recording.header, entries, Session(recording.header).add_all(entries))

    def exchanges(self, method: str, subject: str | None = None) -> list[Exchange]:
        """Return the exchanges of a method in order, optionally of one tool or resource."""
        return [
            exchange
            for exchange in self.session.exchanges
            if exchange.request.method == method and subject in (None, exchange.request.subject)
        ]

    def notes(self, kind: str) -> list[Note]:
        """Return the notes of a kind, in order."""
        return [entry for entry in self.entries if isinstance(entry, Note) and entry.kind == kind]

    def complaints(self) -> list[str]:
        """Return everything that is wrong with the recording: nothing if the peers and the recorder have no faults."""
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


ORDINARY = ("stderr", "eof", "signal", "exit", "http", "http-end", "sse", "mock", "unread", "unfinished")
"""Notes of a run without faults. The last two say that a peer paused: one that starts on a loaded machine does."""


def _is_ordinary(note: Note) -> bool:
    """Return whether a note is not a complaint. A server that hangs up or cannot be reached is a complaint."""
    return (
        note.kind in ORDINARY
        and note.fields.get("hung_up") != "server"
        and not ("http" in note.fields and "error" in note.fields)
    )


class Peers:
    """Starts clients, each with the command of a server."""

    def __init__(self, folder: Path, commands: dict[str, list[str]], environment: dict[str, str]) -> None:
        self.folder = folder
        """Run all clients in this folder."""
        self._commands = commands
        self._environment = environment

    async def play(self, client: str, *server: str) -> Played:
        """Run a client (its name and options) with a server's command or URL, to its end."""
        name, *options = client.split()
        target = ("--", *server)
        if name == "inspector.sh" and server[0].startswith("http://"):
            # The client treats what follows `--` as a command, and what follows `--tool-arg` as an argument.
            options, target = [server[0], *options], ()
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
            pytest.fail(f"{client} did not finish within {SECONDS} s", pytrace=False)
        return Played.of(out.decode(), err.decode(), process.returncode or 0)

    @asynccontextmanager
    async def proxied(
        self, upstream: str, listen: str = ":0", folder: str = "recorded", *options: str, said: str = ""
    ) -> AsyncIterator[str]:
        """Run `mcpspy http` in front of a URL, recording into a folder. Yield the proxy's URL. `said` is what it prints after the URL."""
        process = await asyncio.create_subprocess_exec(
            *("mcpspy", "http", "--upstream", upstream, "--listen", listen, "--record", f"{folder}/r.jsonl"),
            *options,
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
            assert (rest.decode(), process.returncode) == (said, 0)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    @asynccontextmanager
    async def mocked(self, *arguments: str, expected: str = "") -> AsyncIterator[str]:
        """Run `mcpspy mock … --http 0` and yield its URL. `says` is a pattern for all later output."""
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
        """Wait for the recordings in a folder to end, and read them, the first to start first."""
        found = []
        for path in (self.folder / name).glob("*.jsonl"):
            async with asyncio.timeout(SECONDS):
                followed = [entry async for entry in follow(path)]
            read = Read.of(path)
            assert read.entries == followed, "a follower gets the same entries"
            found.append(read)
        return sorted(found, key=lambda read: read.header.started)


@pytest.fixture(scope="session", autouse=True)
def _started_fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the processes whose forks are mcpspy and the peers on the Python SDKs (tests/peers/forked.py).

    The peers on Node run on the one in .peers, which keeps compiled code: they start in two thirds of the CPU time.
    """
    from recordings import make

    if sys.platform != "linux" or not (make.PEERS / "installed").exists():
        yield
        return
    from tests.forks import forks, modules_of_commands, write_command

    first = tmp_path_factory.mktemp("bin")
    write_command(first / "mcpspy")
    write_node(first / "node")
    programs: dict[Path, Sequence[str]] = {
        make.PEERS / name / "bin" / "python": () for name in ("venv", "mcp1")
    }
    programs[Path(sys.executable)] = modules_of_commands()
    with forks(programs) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")
        patch.setattr(make, "FIRST", (first,))
        yield


def write_node(path: Path) -> None:
    """Write a command `node` that runs the Node of .peers, with a cache of compiled code there."""
    from recordings import make

    node = make.PEERS / "node24" / "node_modules" / ".bin" / "node"
    cache = make.PEERS / "node24" / "compiled"
    path.write_text(f"#!/bin/sh\nNODE_COMPILE_CACHE='{cache}' exec '{node}' \"$@\"\n", encoding="utf-8")
    path.chmod(0o700)


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    from recordings import make

    if not (make.PEERS / "installed").exists():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    commands = {**make.COMMANDS, "oauth.py": ["python", str(make.CLIENTS / "oauth.py")]}
    return Peers(tmp_path, commands, make.environment(tmp_path))


@pytest.fixture
def recording() -> Callable[[str], Read]:
    """Read a file of the folder recordings/."""
    from recordings import make

    return lambda name: Read.of(make.HERE / f"{name}.jsonl")
