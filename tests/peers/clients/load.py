"""Many concurrent calls with the Python SDK's client, and a count of the responses.

    .peers/venv/bin/python tests/peers/clients/load.py --calls N [--at-once K] [--size BYTES]
        [--mode auto|legacy|2026-07-28] [--seconds S] [-- COMMAND ARGS...]

COMMAND needs the tool `echo(text)`; without a COMMAND, the SDK server is started. Every call has a unique
text, so a response to the wrong call counts as wrong. Exit code 0 if all N responses are right.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import json
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SDK_SERVER = Path(__file__).resolve().parents[1] / "servers" / "sdk_server.py"


async def load(command: list[str], options: argparse.Namespace) -> dict[str, int]:
    counts = {"calls": options.calls, "right": 0, "wrong": 0, "errors": 0}
    numbers = iter(range(options.calls))

    async def work(client: Client) -> None:
        for number in numbers:
            text = f"{number}:".ljust(options.size, "x")
            try:
                result = await client.call_tool("echo", {"text": text})
            except MCPError:
                counts["errors"] += 1
                continue
            match result.content:
                case [types.TextContent(text=received)] if received == text:
                    counts["right"] += 1
                case _:
                    counts["wrong"] += 1

    server = StdioServerParameters(command=command[0], args=command[1:])
    with anyio.move_on_after(options.seconds):
        async with Client(server, mode=options.mode) as client, anyio.create_task_group() as group:
            for _ in range(min(options.at_once, options.calls)):
                group.start_soon(work, client)
    return counts


def main() -> int:
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description="Call a tool many times.", usage="%(prog)s --calls N [options] [-- COMMAND]"
    )
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--at-once", type=int, default=32, help="calls in flight (default: 32)")
    parser.add_argument("--size", type=int, default=0, help="length of each text, at least (default: 0)")
    parser.add_argument("--mode", choices=["auto", "legacy", *MODERN_PROTOCOL_VERSIONS], default="auto")
    parser.add_argument("--seconds", type=float, default=60, help="give up after (default: 60)")
    options = parser.parse_args(words[:at])
    command = words[at + 1 :] or [sys.executable, str(SDK_SERVER)]
    try:
        counts = anyio.run(load, command, options)
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        print(f"load.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(counts))
    return 0 if counts["right"] == options.calls else 1


if __name__ == "__main__":
    sys.exit(main())
