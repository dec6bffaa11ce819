"""The tutorial is followed word for word: its files are written, its commands run, and their output is compared."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from recordings import make
from tests import forks

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
MCP2 = make.PEERS / "mcp2" / "bin" / "python"
SECONDS = 60
"""Limit for one command, and for one message."""

MAIN = '\n\nif __name__ == "__main__":'
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


class Host:
    """A host that has started the server, and has listed nothing."""

    def __init__(self, line: str, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            line, shell=True, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._heard: Queue[dict[str, Any]] = Queue()
        Thread(target=self._listen, daemon=True).start()

    def say(self, method: str, **fields: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **fields}).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        return self._heard.get(timeout=SECONDS)

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(SECONDS) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._heard.put(json.loads(line))


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield an environment in which `python` has the SDK; where they can, programs are forks."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    python = programs / "python"
    python.write_text(
        f"#!{MCP2}\nimport runpy, sys\nsys.path.insert(0, {str(forks.PROGRAM.parent)!r})\nimport forked\n"
        "del sys.path[0], sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n",
        encoding="utf-8",
    )
    python.chmod(0o700)
    with forks.forks({Path(sys.executable): forks.modules_of_commands(), MCP2: ()}) as forked:
        yield {
            **make.environment(home),
            "PATH": os.pathsep.join(
                [str(programs), str(Path(forks.command()).parent), os.environ["PATH"], forked]
            ),
            "MCPSPY_DIR": str(home / "sessions"),
        }


@pytest.mark.skipif(sys.platform == "win32", reason="the lines are those of a POSIX shell")
@pytest.mark.timeout(600)
def test_the_tutorial_leads_from_an_empty_folder_to_a_server_that_is_restarted(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "weather"
    folder.mkdir()
    server = folder / "weather.py"
    host: Host | None = None
    for language, block in re.findall(
        r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        if language == "python" and host is None:
            server.write_text(block, encoding="utf-8")
        elif language == "python":
            assert host is not None
            text = server.read_text("utf-8")
            server.write_text(text.replace(MAIN, f"\n\n{block}{MAIN}"), encoding="utf-8")
            assert host.hear()["method"] == "notifications/tools/list_changed"
        elif language == "sh":
            host = Host(block, folder, environment)
            host.say("initialize", id=0, params=INITIALIZE)
            assert host.hear()["result"]["serverInfo"]["name"] == "weather"
            host.say("notifications/initialized")
            host.say("tools/list", id=1)
            assert len(host.hear()["result"]["tools"]) == 2
        else:
            assert language == "console"
            for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, expected = example.partition("\n")
                printed = _printed(line, folder, environment)
                assert _missing(expected, printed) == [], f"{line}\n{printed}"
    assert host is not None
    host.leave()


def _printed(line: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a line of the page; return what it prints, stdout before stderr."""
    ran = subprocess.run(
        line, shell=True, cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False
    )
    assert ran.returncode in (0, 1, 2)
    return (ran.stdout + ran.stderr).decode()


def _missing(expected: str, printed: str) -> list[str]:
    """Return the expected lines that were not printed; … is any text, and alone any lines."""
    lines = [line.strip() for line in printed.splitlines()]
    wanted = [line.strip() for line in expected.splitlines() if line.strip() not in ("", "…")]
    patterns = [line.replace("[", "[[]").replace("?", "[?]").replace("…", "*") for line in wanted]
    return [pattern for pattern in patterns if not fnmatch.filter(lines, pattern)]
