"""`mcpspy metrics` beside real servers: it counts live sessions, from their start to their end."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from recordings import make
from tests import forks
from tests.e2e.test_http import SERVERS, serving

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

AGENT = Path(__file__).parent.parent / "peers" / "clients" / "agent.py"
SECONDS = 60


async def test_live_sessions_on_stdio_and_http_are_counted_and_foreign_pages_refused(peers: Peers) -> None:
    folder, environment = peers.folder / "recorded", make.environment(peers.folder)
    folder.mkdir()
    everything = str(make.PEERS / "node_modules" / ".bin" / "mcp-server-everything")
    wrapped = [forks.command(), "run", "--dir", str(folder), "--name", "files", "--"]
    command = [forks.command(), "metrics", "--listen", ":0", "--dir", str(folder)]
    metrics = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert metrics.stdout is not None
    try:
        async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as browser:
            url = (await metrics.stdout.readline()).decode().strip()

            async def value(name: str, **labels: str) -> float:
                async with browser.get(url) as response:
                    families = [*text_string_to_metric_families(await response.text())]
                found = [sample for family in families for sample in family.samples if sample.name == name]
                return sum(sample.value for sample in found if labels.items() <= sample.labels.items())

            async def until(count: float, name: str, **labels: str) -> None:
                while await value(name, **labels) < count:  # noqa: ASYNC110 - counted in another process.
                    await asyncio.sleep(0.1)

            with serving("everything", *SERVERS["everything"], peers.folder) as server:
                async with peers.proxied(server, ":0", "recorded") as proxied:
                    agent = await asyncio.create_subprocess_exec(
                        str(make.PEERS / "mcp1" / "bin" / "python"),
                        *(str(AGENT), shlex.join([*wrapped, everything, "stdio"]), proxied),
                        env=environment,
                    )
                    assert await agent.wait() == 0
                    operations = "mcp_client_operation_duration_seconds_count"
                    await until(4, operations, mcp_method_name="tools/list", error_type="")
                    await until(2, operations, mcp_method_name="initialize")
            await until(2, "mcp_client_session_duration_seconds_count")
            await until(
                1, "mcp_client_session_duration_seconds_count", server="files", network_transport="pipe"
            )
            assert await value("mcpspy_sessions_live") == 0
            assert await value(operations, server="files", mcp_method_name="tools/list") == 2

            port = urlsplit(url).port
            for foreign in ({"Host": f"evil.example:{port}"}, {"Origin": "http://evil.example"}):
                async with browser.get(url, headers=foreign) as response:
                    assert response.status == 403
            metrics.terminate()
            assert await metrics.wait() == 0
    finally:
        if metrics.returncode is None:
            metrics.kill()
            await metrics.wait()
