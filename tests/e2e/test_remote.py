"""`--ssh`: the sessions of another machine in the web page and in the terminal UI, through a real sshd."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import aiohttp
import pytest

from tests.io.files import EXIT, frame, write
from tests.io.remote.conftest import BOUND, Machine, machine

__all__ = ["machine"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="--ssh needs Unix sockets")

ASK = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def test_the_web_page_shows_the_sessions_of_another_machine(machine: Machine) -> None:
    write(machine.sessions / "old.jsonl", frame(0.5, "client", ASK), EXIT, name="weather")
    command = [sys.executable, "-m", "mcpspy", "web", "--ssh", "box"]
    environment = {**os.environ, "PATH": f"{machine.ssh.parent}:{os.environ['PATH']}"}
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=environment)
    async with asyncio.timeout(BOUND):
        try:
            assert process.stdout is not None
            address, _, token = (await process.stdout.readline()).decode().strip().partition("#")
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                async with client.post(f"{address}api/login", data=token) as response:
                    assert response.status == 204
                async with client.get(f"{address}api/sessions") as response:
                    found = await response.json()
        finally:
            process.terminate()
        assert await process.wait() == 0
    assert found["total"] == 1
    assert "weather" in str(found)


def test_a_machine_without_mcpspy_is_reported_before_the_screen_opens(machine: Machine) -> None:
    machine.install(None)
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "tui", "--ssh", "box"],
        env={**os.environ, "PATH": f"{machine.ssh.parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.decode() == (
        "mcpspy: tui: --ssh box: no program mcpspy there (install it there, for example: pipx install mcpspy)\n"
    )
