"""Interception of a real client in a real terminal: external editor, resend, release by a killed viewer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.io.recording.reader import Recording
from tests.e2e.test_tui import hosted, shows
from tests.ui.tui.test_in_a_terminal import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Peers


@pytest.fixture
def terminal(peers: Peers, runtime: Path) -> Iterator[Tmux]:
    tmux = Tmux(peers.folder / "recorded", (120, 30))
    yield tmux
    tmux.kill()


def notes(path: Path, action: str) -> list[dict[str, Any]]:
    """Return the fields of the notes of an action."""
    found = [entry.fields for entry in Recording(path) if isinstance(entry, Note) and entry.kind == "rule"]
    return [fields for fields in found if fields["action"] == action]


async def test_a_call_is_edited_repeated_and_not_lost_with_its_viewer(
    terminal: Tmux, peers: Peers, runtime: Path
) -> None:
    # The SDK client passes almost none of its environment to the server.
    async with hosted(peers.folder, "env", f"MCPSPY_RUNTIME={runtime}") as host:
        (path,) = (peers.folder / "recorded").glob("*.jsonl")
        terminal.start(f"'{path}'", EDITOR="sed -i s/before/after/")
        await shows(terminal, "● LIVE", "following")
        terminal.press("/")
        await shows(terminal, "status:err", "clear filter")
        terminal.press("-l", "tool:echo from:client")
        await shows(terminal, "0 matches in")
        terminal.press("Enter")
        await shows(terminal, "q back")
        terminal.press("i")
        await shows(terminal, "intercepting tool:echo from:client · 0 held")

        calling = asyncio.ensure_future(host.call("echo", "before"))
        await shows(terminal, "HELD 0:0", "1 held · tools/call echo · auto-releases in 4:5")
        terminal.press("Enter")
        await shows(terminal, '"text": "before"', "unchanged; ctrl-s sends")
        terminal.press("C-o")
        await shows(terminal, '"text": "after"', "ctrl-s sends")
        assert not calling.done()
        terminal.press("C-s")
        assert await calling == "done"
        await shows(terminal, "0 held", "response: ok in", "held (tui); edited after")
        (released,) = notes(path, "release")
        assert (released["why"], released["viewer"]) == ("edited", "tui")
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if '"from":"server"' in line]
        assert '"text":"after"' in lines[-2], "the edited request reached the server"

        terminal.press("i")
        await shows(terminal, "interception off")
        terminal.press("r")
        await shows(terminal, '"before" → "after"', "mcpspy-")
        terminal.press("q")
        await shows(terminal, "2/2 matches")

        terminal.press("i")
        await shows(terminal, "intercepting tool:echo")
        calling = asyncio.ensure_future(host.call("echo", "again"))
        await shows(terminal, "1 held")
        assert not calling.done()
        os.kill(_viewer(path), signal.SIGKILL)
        assert await calling == "done"
        assert [note["why"] for note in notes(path, "release")] == ["edited", "viewer left"]


def _viewer(path: Path) -> int:
    """Return the id of the process that shows a recording."""
    listed = subprocess.run(["ps", "-wweo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = [line.split() for line in listed.splitlines() if str(path) in line]
    (pid,) = [words[0] for words in found if words[1] == sys.executable and "tui" in words]
    return int(pid)
