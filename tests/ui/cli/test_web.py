"""`mcpspy web`: the address that it prints, and where it listens."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from mcpspy.ui.cli.main import main


async def test_it_prints_an_address_whose_token_opens_the_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcpspy", "web", "--dir", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    async with asyncio.timeout(30):
        try:
            assert process.stdout is not None
            address, _, token = (await process.stdout.readline()).decode().strip().partition("#")
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                async with client.post(f"{address}api/login", data=token) as response:
                    assert response.status == 204
                async with client.get(f"{address}api/sessions") as response:
                    assert (await response.json())["total"] == 0
        finally:
            process.terminate()
        assert await process.wait() == 0


def test_it_listens_on_loopback_unless_the_user_insists(capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("0.0.0.0:0", "192.168.0.7:80", "[::]:0"):
        assert main(["web", "--listen", address]) == 2
        assert "--i-know" in capsys.readouterr().err


def test_an_invalid_address_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--listen", "8000x"]) == 2
    assert "--listen 8000x: not a valid address" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script as the browser")
async def test_open_hides_the_token_from_the_arguments_of_the_browser(tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {seen}.new\ncat "${{1#file://}}" >> {seen}.new\nmv {seen}.new {seen}\n'
    )
    browser.chmod(0o700)
    command = [sys.executable, "-m", "mcpspy", "web", "--open", "--dir", str(tmp_path)]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=environment)
    async with asyncio.timeout(30):
        try:
            assert process.stdout is not None
            url = (await process.stdout.readline()).decode().strip()
            while not seen.exists():  # noqa: ASYNC110 - written by another process.
                await asyncio.sleep(0.05)
        finally:
            process.terminate()
        assert await process.wait() == 0
    check_opened(seen.read_text(encoding="utf-8"), url)


def check_opened(seen: str, url: str) -> None:
    """Check what the browser saw: its argument, and the page in the file that it names."""
    argument, page = seen.splitlines()
    assert url.partition("#")[2] not in argument
    assert url in page
    assert not Path(argument.removeprefix("file://")).exists()
