"""The TUI in a real terminal, with a live session of a real client and a real server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from recordings import make
from tests.ui.tui.test_in_a_terminal import SIZES, Tmux

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.e2e.conftest import Peers

SECONDS = 40

CLIENT = """
import sys
import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main() -> None:
    command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(stdio_client(server)) as client:
        print("ready", flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            name, _, text = line.strip().partition(" ")
            try:
                await client.call_tool(name, {"text": text} if text else {})
            except Exception as error:
                print(type(error).__name__, flush=True)
            else:
                print("done", flush=True)

anyio.run(main)
"""
"""An SDK client that calls one tool per line of its stdin."""


class Host(NamedTuple):
    """A running client, whose server runs behind mcpspy."""

    process: asyncio.subprocess.Process

    async def call(self, tool: str, text: str = "") -> str:
        """Call a tool; return `done` or the name of the error."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{tool} {text}\n".encode())
        return await self.next_line()

    async def next_line(self) -> str:
        """Return the next line that the client prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            return (await self.process.stdout.readline()).decode().strip()


@asynccontextmanager
async def hosted(folder: Path, *before: str) -> AsyncIterator[Host]:
    """Run a connected client until the end of the block, with `before` in front of its server's command."""
    script = folder / "client.py"
    script.write_text(CLIENT, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(str(make.PEERS / "venv" / "bin" / "python"), str(script)),
        *(*before, sys.executable, "-m", "mcpspy", "run", "--dir", str(folder / "recorded"), "--"),
        *(str(make.PEERS / "venv" / "bin" / "python"), str(make.SDK_SERVER)),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(make.ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    host = Host(process)
    try:
        assert await host.next_line() == "ready"
        yield host
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@pytest.fixture(params=SIZES, ids=["80x24", "200x50"])
def terminal(request: pytest.FixtureRequest, peers: Peers) -> Iterator[Tmux]:
    tmux = Tmux(peers.folder / "recorded", request.param)
    yield tmux
    tmux.kill()


async def shows(terminal: Tmux, *texts: str) -> str:
    """Wait for texts while the client runs."""
    return await asyncio.to_thread(terminal.shows, *texts)


def processes(text: str) -> list[int]:
    """Return the processes whose command contains a text, without zombies."""
    listed = subprocess.run(["ps", "-eo", "pid=,stat=,args="], capture_output=True, text=True, check=True)
    found = re.findall(r"^ *(\d+) (\S+) +(.*)$", listed.stdout, re.MULTILINE)
    return [int(pid) for pid, state, command in found if text in command and not state.startswith("Z")]


def followed(text: str) -> int:
    """Return the number of rows if the list follows the last one, otherwise 0."""
    found = re.search(r"(\d+)/(\d+)  following", text)
    return int(found[2]) if found is not None and found[1] == found[2] else 0


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition; the timeout allows for a busy machine."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what


async def test_a_session_that_began_earlier_is_watched(terminal: Tmux, peers: Peers) -> None:
    async with hosted(peers.folder) as host:
        for word in ("one", "two", "three"):
            assert await host.call("echo", word) == "done"
        terminal.start()
        await shows(terminal, "mcpspy · sessions", "●", "sdk-peer" if terminal.width >= 200 else "live")
        terminal.press("Enter")
        await shows(terminal, "● LIVE", "following", "tools/call")
        terminal.press("g")
        text = await shows(terminal, "paused", "server/discover")
        assert "▸" in text
        terminal.press("End")
        before = followed(await shows(terminal, "following"))

        assert await host.call("echo", "four") == "done"
        await asyncio.to_thread(terminal.until, lambda text: followed(text) == before + 1, "one more row")
        assert await host.call("fail") == "done"
        await shows(terminal, "1 error", "it was asked")

        terminal.press("/")
        await shows(terminal, "status:err", "tool:echo")
        terminal.press("-l", "text:three")
        shown = await shows(terminal, "1/1 matches in", "/ text:three")
        assert shown.count("tools/call") >= 1
        terminal.press("Enter")
        await shows(terminal, "enter open")  # The list has the focus again.
        terminal.press("Enter")
        await asyncio.to_thread(terminal.until, lambda text: "┃" in text or "━" in text, "the thicker edge")
        terminal.press("z")
        await asyncio.to_thread(
            terminal.until,
            lambda text: '"text": "three"' in text and "latency" not in text,
            "the message alone",
        )
        terminal.press("Escape")
        await shows(terminal, "latency")
        terminal.press("Escape")
        terminal.press("Escape")
        await asyncio.to_thread(
            terminal.until, lambda text: "text:three" not in text, "the end of the filter"
        )
        # The row is kept, and rows that the filter shows again are not new.
        await shows(terminal, "▸", "paused (End to follow)", "it was asked")
        terminal.press("End")
        await shows(terminal, "following", "it was asked")
    await shows(terminal, "ended", "○ ended")
    terminal.press("q")
    await shows(terminal, "mcpspy · sessions", "○")
    pid = processes("-m mcpspy tui")
    terminal.press("q")
    shown = await shows(terminal, "exit code 0")
    assert "mcpspy · sessions" not in shown, "the terminal is restored"
    until(lambda: not set(pid) & set(processes("-m mcpspy tui")), "a process is left")


async def test_a_proxy_killed_while_watched_is_shown_as_died(terminal: Tmux, peers: Peers) -> None:
    async with hosted(peers.folder) as host:
        assert await host.call("echo", "before") == "done"
        terminal.start("last")
        await shows(terminal, "● LIVE", "following", "tools/call")
        (proxy,) = _children(host.process.pid)
        os.kill(proxy, signal.SIGKILL)
        await shows(terminal, "✗ died", "died: mcpspy was killed before the server exited", "tools/call")
    terminal.press("q")
    await shows(terminal, "mcpspy · sessions", "✗")
    terminal.press("Q")
    await shows(terminal, "exit code 0")


def _children(pid: int) -> list[int]:
    """Return the mcpspy processes that a process has started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    found = re.findall(r"^ *(\d+) +(\d+) +(.*)$", listed.stdout, re.MULTILINE)
    return [int(one) for one, parent, command in found if int(parent) == pid and "mcpspy run" in command]
