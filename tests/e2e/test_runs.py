"""Two agents at the same time, each with several servers: every session is in the run of its agent."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from mcpspy.io.recording.runs import recorded_runs
from mcpspy.ui.cli.main import main
from recordings import make
from tests.e2e.test_http import SERVERS, serving
from tests.ui.web.serving import served

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

AGENT = Path(__file__).parent.parent / "peers" / "clients" / "agent.py"
SECONDS = 60


@pytest.mark.skipif(sys.platform != "linux", reason="the client of a connection is found in /proc")
async def test_sessions_of_two_agents_are_two_runs_on_stdio_and_http(
    peers: Peers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, environment = peers.folder / "recorded", make.environment(peers.folder)
    everything = str(make.PEERS / "node_modules" / ".bin" / "mcp-server-everything")

    def stdio(name: str) -> str:
        mcpspy = [sys.executable, "-m", "mcpspy", "run", "--dir", str(folder), "--name", name]
        return shlex.join(["sh", "-c", shlex.join([*mcpspy, "--", everything, "stdio"])])

    async def agent(python: str, *servers: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(make.PEERS / python / "bin" / "python"),
            str(AGENT),
            *servers,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS):
            _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()

    with serving("everything", *SERVERS["everything"], peers.folder) as url:
        async with peers.proxied(url) as through_mcpspy:
            await asyncio.gather(
                agent("mcp1", stdio("files"), stdio("weather"), through_mcpspy),
                agent("mcp2", stdio("memory"), through_mcpspy),
            )

    runs = [{summary.header.name for summary in each.sessions} for each in recorded_runs(str(folder))]
    proxied = {name for names in runs for name in names} - {"files", "weather", "memory"}
    assert len(proxied) == 1
    assert sorted(runs, key=len) == [{"memory"} | proxied, {"files", "weather"} | proxied]

    assert main(["runs", "--dir", str(folder), "--format", "json"]) == 0
    listed = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(each["sessions"]) for each in sorted(listed, key=lambda each: len(each["sessions"]))] == [
        2,
        3,
    ]
    for each in listed:
        assert main(["show", f"run:{each['id']}", "--dir", str(folder), "-q", "method:tools/list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert {session["name"] for session in each["sessions"]} == {line.split()[1] for line in lines}
        times = [line.split()[0] for line in lines]
        assert times == sorted(times, key=float)

    async with served(folder) as web:
        for run in (await web.get("runs"))["runs"]:
            rows = await web.get(f"s/run:{run['id']}/rows", q="method:tools/list", count=500)
            names = {session["name"] for session in run["sessions"]}
            assert {row["stream"].split("/")[0] for row in rows["rows"]} == names
            window = await web.get(f"s/run:{run['id']}/timeline", parts=50)
            assert [sum(track["began"]) > 0 for track in window["tracks"]] == [True] * len(names)
