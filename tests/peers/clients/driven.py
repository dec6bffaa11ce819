"""The Python SDK's client, controlled on stdin, with the results of its caller on stdout.

    .peers/venv/bin/python tests/peers/clients/driven.py [--mode auto|legacy|2026-07-28] -- COMMAND ARGS... | URL

Prints `{"ready": REVISION}`. Then each line of stdin is a tool call, `{"tool": NAME, "arguments": {...}, "timeout": S,
"times": N}`, and each line of stdout its outcome: `{"text": ...}` (or `"tool_error"`), `{"error": {"code", "message"}}`,
or `{"exception": NAME}`. It also prints the messages that the client's message handler receives, as `{"received": ...}`. `{"list": true}` lists
the tools. At EOF it disconnects, and prints `{"left": null}` or the name of an exception.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import json
from typing import Any

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl


def write(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def hear(message: object) -> None:
    write(received=type(message).__name__)


async def no_matter(_done: float, _total: float | None, _message: str | None) -> None:
    """Request progress, as most clients do."""


async def roots(_context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///home/ada/demo"), name="demo")])


async def do(client: Client, command: dict[str, Any]) -> None:
    try:
        if "list" in command:
            write(tools=[tool.name for tool in (await client.list_tools()).tools])
            return
        result = await client.call_tool(
            command["tool"],
            command.get("arguments", {}),
            read_timeout_seconds=command.get("timeout"),
            progress_callback=no_matter,
        )
        text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        write(**{"tool_error" if result.is_error else "text": text})
    except MCPError as error:
        write(error={"code": error.error.code, "message": error.error.message})
    except Exception as error:
        write(exception=type(error).__name__)


async def drive(target: StdioServerParameters | str, mode: str) -> None:
    async with Client(target, mode=mode, message_handler=hear, list_roots_callback=roots) as client:
        write(ready=client.protocol_version)
        while line := await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            command = json.loads(line)
            for _ in range(command.get("times", 1)):
                await do(client, command)


def main() -> None:
    words = sys.argv[1:]
    at = words.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["auto", "legacy", *MODERN_PROTOCOL_VERSIONS], default="auto")
    options = parser.parse_args(words[:at])
    target = words[at + 1 :]
    url = target[0].startswith("http")
    server = target[0] if url else StdioServerParameters(command=target[0], args=target[1:])
    try:
        anyio.run(drive, server, options.mode)
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        write(left=type(error).__name__)
        sys.exit(1)
    write(left=None)


if __name__ == "__main__":
    main()
