"""`mcpspy web`: the address that it prints, and where it listens."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

import aiohttp
import pytest

from mcpspy.ui.cli.main import main

ROOT = Path(__file__).parents[3]


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


async def test_scripts_of_the_command_line_and_of_the_settings_add_columns(tmp_path: Path) -> None:
    copy(ROOT / "recordings" / "everything-sdk-auto.jsonl", tmp_path / "real.jsonl")
    (tmp_path / "one.py").write_text("def column_one(e):\n    return e.method\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("def column_two(e):\n    return e.number\n", encoding="utf-8")
    settings = tmp_path / "config" / "mcpspy" / "mcpspy.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[views]\nscripts = ['{tmp_path / 'one.py'}']\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mcpspy",
        "web",
        "--dir",
        str(tmp_path),
        "--script",
        str(tmp_path / "two.py"),
    ]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=environment)
    async with asyncio.timeout(60):
        try:
            assert process.stdout is not None
            address, _, token = (await process.stdout.readline()).decode().strip().partition("#")
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
                await client.post(f"{address}api/login", data=token)
                found = {"waits": True}
                while found["waits"]:
                    async with client.get(f"{address}api/s/b5d36025/rows?q=tool:echo") as response:
                        found = await response.json()
        finally:
            process.terminate()
        assert await process.wait() == 0
    assert found["cells"][0][0] == ["tools/call", None]  # type: ignore[index]
    assert found["cells"][0][1][0].isdecimal()  # type: ignore[index]


def test_a_script_without_columns_and_views_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.py").write_text("def request(e): ...\n", encoding="utf-8")

    assert main(["web", "--script", str(tmp_path / "x.py")]) == 2
    assert "defines no columns and no views" in capsys.readouterr().err


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


async def test_an_address_that_other_machines_reach_and_a_missing_browser_are_reported(
    tmp_path: Path,
) -> None:
    code = """if True:
        import sys, webbrowser
        from mcpspy.ui.cli.main import main
        webbrowser.open = lambda _: False
        sys.exit(main(sys.argv[1:]))
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        *("web", "--dir", str(tmp_path), "--listen", "0.0.0.0:0", "--i-know", "--open"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            lines = [(await process.stderr.readline()).decode() for _ in range(2)]
    finally:
        process.terminate()
        await process.wait()

    assert lines == [
        "mcpspy: warning: listening on 0.0.0.0: who sees the traffic can read every session of the folder\n",
        "mcpspy: no browser found: open the address above\n",
    ]
