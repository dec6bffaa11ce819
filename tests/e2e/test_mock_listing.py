"""Mocks that are made from listings of real servers, with the clients of the official SDKs, which validate results."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.mock.listing import listing_at
from recordings import make
from tests import forks
from tests.core.mock.talking import Json

SECONDS = 60

PYTHON = """
import asyncio, json, sys

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for tool in (await session.list_tools()).tools:
            result = await session.call_tool(tool.name, json.loads(sys.argv[1])[tool.name])
            print(json.dumps([tool.name, result.model_dump(mode="json", by_alias=True)]))

asyncio.run(main())
"""

TYPESCRIPT = """
import { createRequire } from "node:module";
const require = createRequire(process.argv[2]);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [all, mode, command, ...args] = process.argv.slice(3);
const client = new Client(
  { name: "lists", version: "1" },
  { versionNegotiation: { mode: mode === "auto" ? "auto" : mode === "legacy" ? "legacy" : { pin: mode } } },
);
const isUrl = command.startsWith("http");
await client.connect(
  isUrl ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args }),
);
for (const { name } of (await client.listTools()).tools) {
  console.log(JSON.stringify([name, await client.callTool({ name, arguments: JSON.parse(all)[name] })]));
}
await client.close();
"""

LISTINGS = {"everything": "everything-sdk-legacy.jsonl", "filesystem": "filesystem-sdk-legacy.jsonl"}


def arguments(listing: Any) -> dict[str, Json]:
    """Return valid arguments for each tool."""
    from mcpspy.core.mock.values import generated

    return {tool["name"]: generated(tool["inputSchema"], "0") for tool in listing.items["tools"]}


@pytest.mark.parametrize("server", LISTINGS)
@pytest.mark.parametrize("client", ["python-2", "python-1", "typescript-legacy", "typescript-2026-07-28"])
def test_every_tool_of_a_listed_server_is_answered_with_a_result_that_the_client_accepts(
    server: str, client: str, tmp_path: Path
) -> None:
    recording = make.ROOT / "recordings" / LISTINGS[server]
    listing = listing_at(str(recording), Path)
    all_arguments = json.dumps(arguments(listing))
    mock = [forks.command(), "mock", "--from-listing", str(recording)]
    if client.startswith("python"):
        python = make.PEERS / {"python-2": "venv", "python-1": "mcp1"}[client] / "bin" / "python"
        command = [str(python), "-c", PYTHON, all_arguments, *mock]
    else:
        script = tmp_path / "client.mjs"
        script.write_text(TYPESCRIPT, encoding="utf-8")
        mode = client.removeprefix("typescript-")
        command = ["node", str(script), str(make.PEERS / "package.json"), all_arguments, mode, *mock]
    done = subprocess.run(
        command, env={**os.environ, **make.environment(tmp_path)}, capture_output=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr.decode()
    answered = dict(json.loads(line) for line in done.stdout.splitlines())
    assert list(answered) == [tool["name"] for tool in listing.items["tools"]]
    for tool in listing.items["tools"]:
        result = answered[tool["name"]]
        assert not result.get("isError"), result
        assert result["content"][0]["type"] == "text"
        assert ("outputSchema" in tool) == bool(result.get("structuredContent"))


def test_a_listing_is_served_over_http_to_both_eras(tmp_path: Path) -> None:
    tools = [{"name": "add", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}}]  # fmt: skip
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    script = tmp_path / "client.mjs"
    script.write_text(TYPESCRIPT, encoding="utf-8")
    (tmp_path / "answers.yaml").write_text(
        "- tool: add\n  arguments: {a: 1}\n  result: {structuredContent: {sum: 41}}\n", encoding="utf-8"
    )
    words = ["--from-listing", "tools.json", "--fixtures", "answers.yaml", "--http", "0"]
    with subprocess.Popen(
        [forks.command(), "mock", *words],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    ) as mock:  # fmt: skip
        assert mock.stderr is not None
        line = mock.stderr.readline()
        url = line.split()[1]
        try:
            for mode in ("legacy", "2026-07-28", "auto"):
                done = subprocess.run(
                    ["node", str(script), str(make.PEERS / "package.json"), '{"add": {"a": 1}}', mode, url],
                    capture_output=True, timeout=SECONDS,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr.decode()
                (answered,) = map(json.loads, done.stdout.splitlines())
                assert answered[1]["structuredContent"] == {"sum": 41}
        finally:
            mock.terminate()
