"""The suite of docs/pytest.md, with both Python SDKs: recorded once, then served, with useful failures."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.pytest_plugin.options import PluginOptions
from recordings import make

PAGE = (make.ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")

SECONDS = 60
"""Limit for one run of pytest. The SDK alone takes three seconds to import."""


class Suite:
    """The files of the page, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        blocks = re.findall(r"^```python\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        for name, block in zip(("sums.py", "test_sums.py", "conftest.py"), blocks, strict=False):
            (folder / name).write_text(block, encoding="utf-8")

    def add_changed(self) -> None:
        """Add tests that use the same recordings, but send new requests and ignore errors."""
        sums = self._changed("sums.py", "        result = await", "        try:\n            result = await")
        light = sums.replace(
            "        return result",
            "        except Exception:\n            return '5 9'\n        return result",
        )
        (self.folder / "light.py").write_text(light, encoding="utf-8")
        tests = self._changed("test_sums.py", "import sums", "import light as sums").replace("2, 3", "2, 4")
        for name in ("test_a_sum", "test_a_sum_over_http"):
            marker = f'@pytest.mark.mcp_recording("mcp_recordings/test_sums/{name}.jsonl")\nasync def {name}('
            tests = tests.replace(f"async def {name}(", marker)
        tests = tests.replace("4, 5", "4, 6").replace("def test_the_tools", "def the_tools")
        (self.folder / "test_changed.py").write_text(tests, encoding="utf-8")

    def _changed(self, name: str, old: str, new: str) -> str:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text
        return text.replace(old, new)

    async def run(self, peers: str, **environment: str) -> str:
        """Run pytest in an environment of the peers. Return its output."""
        process = await asyncio.create_subprocess_exec(
            *(str(make.PEERS / peers / "bin" / "python"), "-m", "pytest", "-p", "no:cacheprovider"),
            *("-o", "asyncio_default_fixture_loop_scope=function", "--basetemp", str(self.folder / "tmp")),
            cwd=self.folder,
            env={**make.environment(self.folder), **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(SECONDS):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return output.decode()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    if not (make.PEERS / "mcp1").is_dir():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    return Suite(tmp_path)


async def test_a_suite_is_recorded_then_served_offline_and_fails_for_what_is_new(suite: Suite) -> None:
    recordings = suite.folder / "mcp_recordings" / "test_sums"

    output = await suite.run("mcp2")
    assert "3 passed" in output, output
    made = {path.name: Recording(path) for path in recordings.iterdir()}
    assert set(made) == {
        "test_a_sum.jsonl",
        "test_the_tools.jsonl",
        "test_a_sum_over_http.jsonl",
    }
    assert {each.state for each in made.values()} == {RecordingState.ENDED}
    assert made["test_a_sum_over_http.jsonl"].header.transport == "http"
    assert all(each.header.redacted for each in made.values())
    before = {path.name: path.read_bytes() for path in recordings.iterdir()}

    # Offline, with a missing command; with CI set, nothing is recorded anyway. With the other SDK, too.
    without_servers = os.pathsep.join(
        place
        for place in make.environment(suite.folder)["PATH"].split(os.pathsep)
        if not (Path(place) / "mcp-server-everything").exists()
    )
    suite.add_changed()
    output = await suite.run("mcp1", PATH=without_servers, CI="true")
    assert "2 failed, 3 passed" in output, output
    assert "test_sums.py ..." in output, "everything recorded is served"
    (example,) = re.findall(r"^```\n(mcpspy: 1 request .+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert example.replace("test_sums.py::", "test_changed.py::") in output
    assert "    /params/arguments/b: recorded 5, sent 6\n" in output
    assert {path.name: path.read_bytes() for path in recordings.iterdir()} == before


SERVERS = {
    "everything": ("mcp-server-everything", "stdio"),
    "sdk": ("python", str(make.SDK_SERVER)),
}

CLIENTS = {
    "python-2": "sdk.py --mode auto --script {server} -- {url}",
    "python-1": "sdk1.py {url}",
    "typescript": "ts_client.mjs --mode auto --tool echo -- {url}",
}
COMMANDS = {**make.COMMANDS, "sdk1.py": [str(make.PEERS / "mcp1/bin/python"), str(make.CLIENTS / "sdk1.py")]}


@pytest.mark.parametrize(
    ("server", "client"),
    [*(("everything", client) for client in CLIENTS), ("sdk", "python-2"), ("sdk", "python-1")],
)
def test_a_server_on_stdio_is_recorded_by_url_and_a_client_gets_the_same_from_the_recording(
    server: str, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (make.PEERS / "mcp1").is_dir():
        pytest.fail("the peers are not installed: run make peers", pytrace=False)
    for name, value in make.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    program, *words = CLIENTS[client].split()
    transcripts = []
    for run in ("record", "serve"):
        options = PluginOptions(
            test="test_it", path=tmp_path / "recording.jsonl", mode="once", server=SERVERS[server]
        )
        recording = McpRecording(options, tmp_path / run)
        assert recording.records_all == (run == "record")
        arguments = [word.format(server=server, url=recording.url) for word in words]
        done = subprocess.run([*COMMANDS[program], *arguments], stdout=subprocess.PIPE, timeout=SECONDS)
        assert done.returncode == 0
        transcripts.append(done.stdout.decode())
        recording.has_passed = True
        assert recording.finish() == ""

    assert transcripts[0] == transcripts[1]
    assert Recording(tmp_path / "recording.jsonl").header.transport == "stdio"
