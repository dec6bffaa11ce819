"""`mcpspy.record` with the clients of both Python SDKs and real servers, on stdio and over HTTP."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mcpspy
from recordings import make
from tests.e2e.conftest import SECONDS

ROOT = Path(__file__).parents[2]

CLIENT = """
import asyncio, sys
import mcpspy
from mcp import ClientSession

async def main(server, to):
    async with mcpspy.record(server, to) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print(len((await session.list_tools()).tools))
        print((await session.call_tool("echo", {"message": "Grüße"})).content[0].text)

server = sys.argv[2:] if sys.argv[2:] != sys.argv[2:3] or "://" not in sys.argv[2] else sys.argv[2]
asyncio.run(main(server, sys.argv[1]))
"""


@pytest.fixture(scope="module", params=["venv", "mcp1"])
def sdk(request: pytest.FixtureRequest) -> str:
    """The packages of an SDK, version 2 or 1, for this Python."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = make.PEERS / request.param / "lib" / version / "site-packages"
    if not found.is_dir():
        pytest.skip(f"{request.param} is not installed for this Python: make peers")
    if request.param == "mcp1":  # It lacks what both versions share.
        return f"{found}:{make.PEERS / 'venv' / 'lib' / version / 'site-packages'}"
    return str(found)


def play(sdk: str, folder: Path, *server: str, client: str = CLIENT) -> list[str]:
    """Run a client in a folder; return its output."""
    script = folder / "client.py"
    script.write_text(client, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), f"{folder}/session.jsonl", *server],
        cwd=folder,
        env=make.environment(folder) | {"PYTHONUTF8": "1", "PYTHONPATH": f"{ROOT}:{sdk}"},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check(printed: list[str], folder: Path) -> None:
    session = mcpspy.read(folder / "session.jsonl")
    (tools,) = (each for each in session if each.method == "tools/list")
    (call,) = session.filter("tool:echo")

    assert printed[0] == str(len(tools.result["tools"]))
    assert call.result["content"][0]["text"] == printed[1]
    assert "Grüße" in printed[1]


def test_a_client_of_the_sdk_is_recorded_on_stdio(sdk: str, tmp_path: Path) -> None:
    check(play(sdk, tmp_path, "mcp-server-everything", "stdio"), tmp_path)


def test_the_example_of_record_works(sdk: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", inspect.getdoc(mcpspy.record) or "", re.DOTALL)

    assert play(sdk, tmp_path, client=example) == ["mcp-servers/everything 2.0.0"]


async def test_a_client_of_the_sdk_is_recorded_over_http(sdk: str, tmp_path: Path) -> None:
    recording = ROOT / "recordings" / "everything-sdk-legacy.jsonl"
    async with mcpspy.Mock(recording, match="nearest").serve_http() as url:
        printed = await asyncio.to_thread(play, sdk, tmp_path, url)

    check(printed, tmp_path)
